/** The links between remembered texts as a graph. Each text is a link that shows it below with its own links, so that the
 * keyboard and a screen reader reach what the picture shows. */
import { useCallback, useMemo } from "react";

import { api, dataOf } from "../api/client";
import { useLoaded } from "../api/useLoaded";
import { useTexts } from "../i18n";
import { sentence } from "../i18n/errors";
import { addressOf } from "../router";
import "../styles/graph.css";
import { Notice } from "../ui/Notice";
import { GRAPH } from "./addresses";
import { RememberedText } from "./Chunks";
import { graphOf, type Graph, type GraphNode } from "./graphLayout";

/** As many as one request returns: the newest. */
const MOST = 1000;
const MARGIN = 80;
const LABEL = 20;
/** With more texts than this, only those around the chosen one have a label. */
const MOST_LABELS = 60;

/** `chosen` is the id of a text; "" for none. */
export default function ChunkGraph({ chosen }: { chosen: string }) {
  const t = useTexts();
  const ask = useCallback(() => dataOf(api.GET("/api/memory/chunks", { params: { query: { limit: MOST } } })), []);
  const { data, failure, reload } = useLoaded(ask);
  const graph = useMemo(() => graphOf(data?.chunks ?? []), [data]);
  const node = graph.nodes.find((one) => one.chunk.id === chosen);
  return (
    <>
      <h1>{t("memory.graph")}</h1>
      {failure !== null && <Notice kind="error">{sentence(t, failure)}</Notice>}
      {data !== null && graph.nodes.length === 0 && <p className="dim">{t("memory.graph.none")}</p>}
      {graph.nodes.length > 0 && (
        <>
          <p className="dim">{t("memory.graph.how", { texts: graph.nodes.length, links: graph.edges.length })}</p>
          <Drawing graph={graph} chosen={node} />
        </>
      )}
      {node !== undefined && (
        <div className="card" role="region" aria-label={t("memory.graph.chosen")}>
          <RememberedText key={chosen} chunk={node.chunk} areLinksShown onForgotten={reload} />
        </div>
      )}
    </>
  );
}

function Drawing({ graph, chosen }: { graph: Graph; chosen: GraphNode | undefined }) {
  const t = useTexts();
  const isNear = (node: GraphNode) => chosen === undefined || node === chosen || chosen.neighbours.has(node.chunk.id);
  const hasLabel = (node: GraphNode) => isNear(node) && (chosen !== undefined || graph.nodes.length <= MOST_LABELS);
  return (
    <svg className="graph" data-chosen={chosen !== undefined} viewBox={frameOf(graph.nodes)} role="group" aria-label={t("memory.graph")}>
      {graph.edges.map((edge, index) => (
        <line
          key={index}
          className={chosen === undefined || edge.source === chosen || edge.target === chosen ? "graph-edge" : "graph-edge graph-far"}
          x1={edge.source.x} y1={edge.source.y} x2={edge.target.x} y2={edge.target.y} strokeWidth={1 + 2 * edge.strength}
        >
          <title>{edge.type}</title>
        </line>
      ))}
      {graph.nodes.map((node) => (
        <a
          key={node.chunk.id}
          className={isNear(node) ? "graph-node" : "graph-node graph-far"}
          href={addressOf("memory", GRAPH, node.chunk.id)}
          aria-current={node === chosen ? "true" : undefined}
          aria-label={t("memory.graph.node", { text: node.chunk.content, count: node.neighbours.size })}
        >
          <title>{node.chunk.content}</title>
          <circle cx={node.x} cy={node.y} r={5 + 2 * Math.min(Math.sqrt(node.neighbours.size), 5)} />
          {hasLabel(node) && <text x={node.x} y={node.y + 24} textAnchor="middle">{shortened(node.chunk.content)}</text>}
        </a>
      ))}
    </svg>
  );
}

/** The part of the plane that has all nodes. */
function frameOf(nodes: GraphNode[]): string {
  const [xs, ys] = [nodes.map((node) => node.x), nodes.map((node) => node.y)];
  const [left, top] = [Math.min(...xs) - MARGIN, Math.min(...ys) - MARGIN / 2];
  return `${left} ${top} ${Math.max(...xs) + MARGIN - left} ${Math.max(...ys) + MARGIN / 2 - top}`;
}

function shortened(text: string): string {
  return text.length > LABEL ? `${text.slice(0, LABEL - 1).trimEnd()}…` : text;
}
