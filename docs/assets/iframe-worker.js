// A page that is opened as a file may not start web workers. The search of this site then runs in a hidden frame.
// The theme asks for this under the name IFrameWorker.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inner = this.frame.contentWindow;
      inner.document.open();
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => load(inner, each)), Promise.resolve());
      inner.document.write("<html><body></body></html>");
      inner.document.close();
      this.ready = load(inner, url);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;

  function load(target, url) {
    return new Promise((resolve, reject) => {
      const script = target.document.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      target.document.body.appendChild(script);
    });
  }
}
