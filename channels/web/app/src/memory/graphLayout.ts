/** Places the linked texts of memory in the plane, by d3's simulation of forces. No drawing in here. */
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";

import type { Schemas } from "../api/client";

export interface GraphNode extends SimulationNodeDatum {
  chunk: Schemas["Chunk"];
  /** The ids of the chunks at the other ends of its links. */
  neighbours: Set<string>;
  x: number;
  y: number;
}

export interface GraphEdge extends SimulationLinkDatum<GraphNode> {
  source: GraphNode;
  target: GraphNode;
  type: string;
  /** From 0 to 1. */
  strength: number;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

const TICKS = 200;

/** The chunks that have links to one another, and these links, in their places: the same for the same chunks. */
export function graphOf(chunks: Schemas["Chunk"][]): Graph {
  const all = new Map(chunks.map((chunk) => [chunk.id, newNode(chunk)]));
  const edges: GraphEdge[] = [];
  for (const source of all.values()) {
    for (const { target_id, type, strength } of source.chunk.links ?? []) {
      const target = all.get(target_id);
      if (target === undefined || target === source) continue;
      source.neighbours.add(target_id);
      target.neighbours.add(source.chunk.id);
      edges.push({ source, target, type, strength: strength ?? 1 });
    }
  }
  const nodes = [...all.values()].filter((node) => node.neighbours.size > 0);
  settle(nodes, edges);
  return { nodes, edges };
}

/** The simulation itself gives a node without a place its first one. */
function newNode(chunk: Schemas["Chunk"]): GraphNode {
  return { chunk, neighbours: new Set(), x: NaN, y: NaN };
}

/** Gives the nodes their places. */
function settle(nodes: GraphNode[], edges: GraphEdge[]): void {
  forceSimulation(nodes)
    .force("links", forceLink<GraphNode, GraphEdge>(edges).distance(130))
    .force("apart", forceManyBody().strength(-400).distanceMax(600))
    .force("collide", forceCollide(40))
    .force("x", forceX(0).strength(0.06))
    .force("y", forceY(0).strength(0.09))
    .stop()
    .tick(TICKS);
}
