// Keeps an error of one view in its place: the navigation goes on, and the view can be tried again.

import { Component, html } from "../vendor/ui.js";

/** @extends {Component<{children?: any}, {error: Error | null}>} */
export class Boundary extends Component {
  /** @type {{error: Error | null}} */
  state = { error: null };

  /** @param {Error} error */
  static getDerivedStateFromError(error) {
    return { error };
  }

  /** @param {Error} error */
  componentDidCatch(error) {
    console.error(error);
  }

  render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return html`<div class="failure" role="alert"><p>This view could not be shown: ${error.message}</p>
      <button type="button" onClick=${() => this.setState({ error: null })}>Try again</button></div>`;
  }
}
