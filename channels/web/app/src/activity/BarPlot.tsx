/** A plot of bars: upright ones in the order of time, else one below the other. Bars are the options of a list, so that
 * the keyboard and a screen reader reach each one; the figure of the chosen bar is below the plot. */
import { AxisBottom, AxisLeft } from "@visx/axis";
import { GridColumns, GridRows } from "@visx/grid";
import { useParentSize } from "@visx/responsive";
import { scaleBand, scaleLinear } from "@visx/scale";
import { Bar } from "@visx/shape";
import { useId, useState, type KeyboardEvent } from "react";

import "../styles/plot.css";

export interface PlotBar {
  key: string;
  name: string;
  value: number;
  /** The value as text. */
  figure: string;
}

interface PlotProps {
  label: string;
  bars: PlotBar[];
  isUpright: boolean;
  /** A value that is drawn as a line across upright bars. */
  limit: number | null;
  tick: (value: number) => string;
}

const UPRIGHT_HEIGHT = 220;
const BAR_HEIGHT = 28;
const FOOT = 24;
const LABEL_WIDTH = 96;
const MARGIN = 8;
/** Room for the half of the last tick's label. */
const END = 32;
const TICK_DISTANCE = 90;

export default function BarPlot(props: PlotProps) {
  const { label, bars } = props;
  const { parentRef, width } = useParentSize({ debounceTime: 0 });
  const [chosen, setChosen] = useState(bars.length - 1);
  const id = useId();
  const current = bars[Math.min(chosen, bars.length - 1)];
  const press = (event: KeyboardEvent) => {
    const next = afterKey(event.key, chosen, bars.length - 1);
    if (next === null) return;
    event.preventDefault();
    setChosen(next);
  };
  return (
    <div className="plot">
      <div ref={parentRef} role="listbox" tabIndex={0} aria-label={label} aria-orientation={props.isUpright ? "horizontal" : "vertical"} aria-activedescendant={`${id}${chosen}`} onKeyDown={press}>
        {width > 0 && <Drawing {...props} id={id} width={width} chosen={chosen} onChoose={setChosen} />}
      </div>
      {current !== undefined && <p className="plot-figure">{current.name}: {current.figure}</p>}
    </div>
  );
}

function afterKey(key: string, chosen: number, last: number): number | null {
  switch (key) {
    case "ArrowLeft":
    case "ArrowUp":
      return Math.max(chosen - 1, 0);
    case "ArrowRight":
    case "ArrowDown":
      return Math.min(chosen + 1, last);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return null;
  }
}

interface DrawingProps extends PlotProps {
  id: string;
  width: number;
  chosen: number;
  onChoose: (index: number) => void;
}

function Drawing({ bars, isUpright, limit, tick, id, width, chosen, onChoose }: DrawingProps) {
  const height = isUpright ? UPRIGHT_HEIGHT : bars.length * BAR_HEIGHT + FOOT;
  const greatest = Math.max(...bars.map((bar) => bar.value), limit ?? 0) || 1;
  const across: [number, number] = [LABEL_WIDTH, width - END];
  const up: [number, number] = [height - FOOT, MARGIN];
  const most = Math.max(Math.floor((across[1] - across[0]) / TICK_DISTANCE), 1);
  const places = scaleBand({ domain: bars.map((bar) => bar.key), range: isUpright ? across : [MARGIN, height - FOOT], padding: 0.2 });
  const lengths = scaleLinear({ domain: [0, greatest], range: isUpright ? up : across, nice: true });
  const names = new Map(bars.map((bar) => [bar.key, bar.name]));
  const nameOf = (key: string) => names.get(key) ?? key;
  const values = { scale: lengths, numTicks: isUpright ? 4 : most, tickFormat: (value: { valueOf(): number }) => tick(value.valueOf()) };
  const groups = { scale: places, hideTicks: true };
  return (
    <svg width={width} height={height} role="presentation">
      <g aria-hidden="true">
        {isUpright ? <GridRows scale={lengths} left={LABEL_WIDTH} width={across[1] - across[0]} numTicks={4} /> : <GridColumns scale={lengths} top={MARGIN} height={up[0] - up[1]} numTicks={most} />}
      </g>
      {bars.map((bar, index) => {
        const [place, end] = [places(bar.key) ?? 0, lengths(bar.value)];
        const box = isUpright ? { x: place, y: end, width: places.bandwidth(), height: height - FOOT - end } : { x: LABEL_WIDTH, y: place, width: end - LABEL_WIDTH, height: places.bandwidth() };
        const field = isUpright ? { ...box, y: 0, height: height - FOOT } : { ...box, x: 0, width };
        return (
          <g key={bar.key} id={`${id}${index}`} role="option" aria-selected={index === chosen} aria-label={`${bar.name}: ${bar.figure}`} className="plot-bar" onPointerEnter={() => onChoose(index)}>
            <Bar {...field} className="plot-field" />
            <Bar {...box} className="plot-value" />
          </g>
        );
      })}
      <g aria-hidden="true" className="plot-axes">
        {isUpright ? (
          <>
            <AxisLeft {...values} left={LABEL_WIDTH} />
            <AxisBottom {...groups} top={up[0]} tickValues={everyNth(bars.map((bar) => bar.key), most)} tickFormat={nameOf} />
          </>
        ) : (
          <>
            <AxisLeft {...groups} left={LABEL_WIDTH} numTicks={bars.length} tickFormat={(key) => shortened(nameOf(key))} />
            <AxisBottom {...values} top={up[0]} />
          </>
        )}
      </g>
      {limit !== null && <line className="plot-limit" aria-hidden="true" x1={across[0]} x2={across[1]} y1={lengths(limit)} y2={lengths(limit)} />}
    </svg>
  );
}

/** At most so many of the keys, the last one among them. */
function everyNth(keys: string[], most: number): string[] {
  const step = Math.ceil(keys.length / most);
  return keys.filter((_, index) => (keys.length - 1 - index) % step === 0);
}

const LONGEST = 14;

function shortened(text: string): string {
  return text.length > LONGEST ? `…${text.slice(1 - LONGEST)}` : text;
}
