// Frame with a page, whose place is that of the model: what the page moves to goes to Python, and back.
export default {
  render({model, el}) {
    const frame = document.createElement("iframe"), keys = ["panel", "time", "parameters"], changes = ["change:time", "change:parameters"];
    let asked = 0, shown = "";  // number of places that were sent, which the page tells with its own; the last place of either
    Object.assign(frame, {srcdoc: model.get("page"), sandbox: "allow-scripts", style: "width: 100%; height: 44rem; border: 0"});
    const send = () => queueMicrotask(() => {
      const place = Object.fromEntries(keys.map(key => [key, model.get(key)])), text = JSON.stringify(place);
      if (text === shown) return;
      shown = text;
      frame.contentWindow?.postMessage({...place, asked: ++asked}, "*");
    });
    const receive = ({source, data}) => {
      if (source !== frame.contentWindow || data.asked !== asked) return;  // of another frame, or from before the last place came
      shown = JSON.stringify(Object.fromEntries(keys.map(key => [key, data[key]])));
      keys.forEach(key => model.set(key, data[key]));
      model.save_changes();
    };
    const begin = () => { shown = ""; send(); };  // a page that is there anew has the place of the model
    addEventListener("message", receive);
    frame.addEventListener("load", begin);
    changes.forEach(change => model.on(change, send));
    el.append(frame);
    return () => {
      removeEventListener("message", receive);
      frame.removeEventListener("load", begin);
      changes.forEach(change => model.off(change, send));
    };
  },
};
