/** Shows a sentence where a part of the page failed, and leaves the rest of the page alone. */
import { Component, type ReactNode } from "react";

interface Props {
  children: ReactNode;
  fallback: (error: unknown) => ReactNode;
}

export class FailureBoundary extends Component<Props, { error: unknown }> {
  override state = { error: null as unknown };

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    return this.state.error === null ? this.props.children : this.props.fallback(this.state.error);
  }
}
