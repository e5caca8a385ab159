// Makes the pages live, and adds keys, dialogs and selection. Pages work without it. api/ui/doc.go
// lists the attributes that it reads.
(() => {
  "use strict";
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const settings = document.body.dataset;

  const announce = (text) => {
    const place = one("#announce");
    if (place && text) place.textContent = text;
  };

  // morph makes one element like another, and keeps what the user has done in it.
  const morph = (from, to) => {
    if (from.hasAttribute("data-keep")) return;
    const stays = (name) => name === "open" && /^(DIALOG|DETAILS)$/.test(from.nodeName) || name === "tabindex" && from.hasAttribute("data-row");
    for (const { name } of [...from.attributes]) if (!to.hasAttribute(name) && !stays(name)) from.removeAttribute(name);
    for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value && !stays(name)) from.setAttribute(name, value);
    morphChildren(from, to);
  };

  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

  const morphChildren = (from, to) => {
    const wanted = new Set([...to.children].map((child) => child.id).filter(Boolean));
    const named = new Map([...from.children].filter((child) => child.id).map((child) => [child.id, child]));
    let at = from.firstChild;
    for (const node of [...to.childNodes]) {
      while (at && at.id && !wanted.has(at.id)) {
        const gone = at;
        at = at.nextSibling;
        gone.remove();
      }
      let same = node.id ? named.get(node.id) : at && alike(at, node) ? at : null;
      if (same && same.nodeName !== node.nodeName) same = null;
      if (!same) {
        from.insertBefore(document.importNode(node, true), at);
        continue;
      }
      if (same === at) at = at.nextSibling;
      else from.insertBefore(same, at);
      if (same.nodeType === Node.ELEMENT_NODE) morph(same, node);
      else if (same.nodeValue !== node.nodeValue) same.nodeValue = node.nodeValue;
    }
    while (at) {
      const gone = at;
      at = at.nextSibling;
      gone.remove();
    }
  };

  // stay lets no row of a list move: one that is gone stays, marked, and one that comes waits.
  const stay = (list, fresh) => {
    const again = one("#" + CSS.escape(list.id), fresh);
    const rows = all("[data-row]", list);
    if (!again || !rows.length) return;
    const order = all("[data-row]", again).map((row) => row.id);
    const changed = order.join() !== rows.map((row) => row.id).join();
    const found = new Map(all("[data-row]", again).map((row) => [row.id, row]));
    const kept = list.cloneNode(true);
    for (const [i, row] of all("[data-row]", kept).entries()) {
      const same = found.get(row.id);
      if (same) rows[i] = same.cloneNode(true);
      else {
        rows[i] = row.cloneNode(true);
        rows[i].classList.add("gone");
        const state = one("[data-label=State], [data-gone]", rows[i]);
        if (state) state.textContent = list.dataset.stay;
      }
      row.replaceWith(rows[i]);
    }
    const caption = one("caption", again);
    if (caption) one("caption", kept).replaceWith(caption);
    again.replaceWith(kept);
    if (changed) for (const link of all("[data-changed]", fresh)) link.hidden = false;
  };

  // Live parts: one request at a time, none in a hidden tab.
  const bar = one("[data-live-bar]");
  const tags = new Map();
  let paused = false;
  let asking = false;
  let failed = false;
  let updated = Date.now();
  let timer = 0;

  const spoken = (part) => new Map(all("[data-announce][id]", part).map((element) => [element.id, element.dataset.announce]));

  const update = async (part) => {
    const source = part.dataset.src || location.pathname + location.search;
    const headers = { "Hf-Fragment": part.id };
    if (tags.has(part.id)) headers["If-None-Match"] = tags.get(part.id);
    const answer = await fetch(source, { headers, cache: "no-store", redirect: "manual", signal: AbortSignal.timeout(60000) });
    if (answer.type === "opaqueredirect" || answer.status === 401) {
      location.reload();
      return;
    }
    if (answer.status === 304) return;
    if (!answer.ok) throw new Error(answer.status);
    tags.set(part.id, answer.headers.get("Etag") || "");
    const before = spoken(part);
    const focused = document.activeElement;
    const fresh = new DOMParser().parseFromString("<body>" + (await answer.text()), "text/html").body;
    for (const list of all("[data-stay][id]", part)) stay(list, fresh);
    morphChildren(part, fresh);
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    const news = [];
    for (const [id, text] of spoken(part)) if (before.has(id) && before.get(id) !== text) news.push(text);
    announce(news.join(". "));
    prepare(part);
    part.dispatchEvent(new CustomEvent("hf:updated", { bubbles: true }));
  };

  const poll = async () => {
    clearTimeout(timer);
    if (paused || asking || document.hidden) return;
    asking = true;
    try {
      for (const part of all("[data-live]")) await update(part);
      updated = Date.now();
      failed = false;
    } catch {
      if (!failed) announce("Updates have stopped: the server does not answer.");
      failed = true;
    }
    asking = false;
    schedule();
    showAge();
  };

  const schedule = () => {
    clearTimeout(timer);
    const parts = all("[data-live]");
    if (paused || document.hidden || !parts.length) return;
    const every = Math.max(Number(settings.every) || 2, ...parts.map((part) => Number(part.dataset.every) || 0));
    timer = setTimeout(poll, every * 1000);
  };

  const ago = (seconds) => {
    const n = Math.abs(seconds);
    if (n < 1) return "now";
    const text = n < 60 ? `${Math.floor(n)} s` : n < 3600 ? `${Math.floor(n / 60)} min` : `${Math.floor(n / 3600)} h`;
    return seconds < 0 ? "in " + text : text + " ago";
  };

  const showAge = () => {
    if (!bar || bar.hidden) return;
    const age = ago(Math.max(0, (Date.now() - updated) / 1000));
    one("[data-live-age]").textContent = (failed ? "No answer. Updated " : "Updated ") + age + (paused ? " · Paused" : " ·");
  };

  const pause = (on) => {
    paused = on;
    const button = one("[data-live-pause]");
    button.textContent = on ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(on));
    announce(on ? "Updates paused" : "Updates resumed");
    showAge();
    if (!on) poll();
  };

  // Times: relative within a day, in the zone of the settings or of the browser.
  const zone = settings.zone || undefined;
  const exactly = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone: zone });
  const named = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short", timeZone: zone });
  const showTimes = (root = document) => {
    for (const time of all("time[data-time]", root)) {
      const at = new Date(time.dateTime);
      const offset = named.formatToParts(at).find((part) => part.type === "timeZoneName").value;
      const exact = `${exactly.format(at)} ${offset}`;
      const seconds = (Date.now() - at) / 1000;
      const text = Math.abs(seconds) < 86400 ? ago(seconds) : exact.slice(0, 16);
      if (time.title !== exact) time.title = exact;
      if (time.textContent !== text) time.textContent = text;
    }
  };

  // Selection.
  let last = null;
  const boxes = () => all("input[data-select]");
  const showSelection = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    for (const place of all("[data-selected]")) place.textContent = ticked.toLocaleString("en");
    for (const control of all("[data-needs-selection]")) control.disabled = !ticked || control.hasAttribute("data-denied");
    for (const box of all("[data-select-all]")) {
      box.checked = ticked > 0 && ticked === boxes().length;
      box.indeterminate = ticked > 0 && !box.checked;
    }
  };

  const prepare = (root) => {
    for (const row of all("[data-row]", root)) if (!row.hasAttribute("tabindex")) row.tabIndex = -1;
    for (const field of all("[data-typed]", root)) field.dispatchEvent(new Event("input", { bubbles: true }));
    showTimes(root);
    showSelection();
  };

  const range = (box) => {
    const list = boxes();
    const [from, to] = [list.indexOf(last), list.indexOf(box)].sort((a, b) => a - b);
    if (from >= 0) for (const between of list.slice(from, to + 1)) between.checked = box.checked;
  };

  // Dialogs return the focus to what opened them.
  const openDialog = (dialog, opener) => {
    dialog.addEventListener("close", () => {
      const again = opener.isConnected ? opener : opener.id && document.getElementById(opener.id);
      (again || one("#main")).focus();
    }, { once: true });
    dialog.showModal();
  };

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button, a, input, [data-copy]");
    if (!target) return;
    const data = target.dataset;
    if (target.matches("[data-live-pause]")) pause(!paused);
    else if ("dialog" in data) {
      const dialog = document.getElementById(data.dialog);
      if (!dialog || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      openDialog(dialog, target);
    } else if ("close" in data && target.closest("dialog")) {
      event.preventDefault();
      target.closest("dialog").close();
    } else if ("copy" in data) {
      navigator.clipboard.writeText(document.getElementById(data.copy).textContent.trim()).then(() => announce("Copied"), () => announce("Could not copy"));
    } else if ("selectAll" in data) {
      for (const box of boxes()) box.checked = target.checked;
      showSelection();
    } else if ("select" in data) {
      if (event.shiftKey) range(target);
      last = target;
      showSelection();
    }
  });

  document.addEventListener("input", ({ target }) => {
    if (!("typed" in target.dataset)) return;
    for (const button of all("button:not([type=button], [data-close])", target.form)) button.disabled = target.value.replace(/[\s,.]/g, "") !== target.dataset.typed.replace(/[\s,.]/g, "");
  });
  document.addEventListener("change", ({ target }) => {
    if ("submit" in target.dataset) target.form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    for (const field of all("[data-from]", form)) field.value = (document.getElementById(field.dataset.from) || field).value;
    if (event.defaultPrevented || form.method !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
  addEventListener("pageshow", () => {
    for (const form of all("form[data-sent]")) delete form.dataset.sent;
  });

  // Keys.
  const typing = (element) => element.matches("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=submit])");
  const move = (step) => {
    const rows = all("[data-row]").filter((row) => row.offsetParent);
    const at = rows.indexOf(document.activeElement.closest("[data-row]"));
    const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
    if (next) next.focus();
  };
  let going = 0;
  const keys = {
    "/": () => { const field = one("[data-search]"); if (field) field.focus(); },
    "?": () => openDialog(one("#keys"), document.activeElement === document.body ? one("#main") : document.activeElement),
    ".": () => { if (bar && !bar.hidden) pause(!paused); },
    j: () => move(1),
    k: () => move(-1),
    x: () => {
      const row = document.activeElement.closest("[data-row]");
      const box = row && one("input[data-select]", row);
      if (box) box.click();
    },
    g: () => { going = Date.now(); },
    Enter: () => {
      const link = document.activeElement.matches("[data-row]") && one("a[href]", document.activeElement);
      if (link) link.click();
      return !!link;
    },
  };
  document.addEventListener("keydown", (event) => {
    if (settings.keys === "off" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (typing(event.target) || one("dialog[open]")) return;
    if (Date.now() - going < 1500) {
      going = 0;
      const link = one(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
      return;
    }
    const act = Object.hasOwn(keys, event.key) && keys[event.key];
    if (act && act() !== false) event.preventDefault();
  });

  // Begin.
  prepare(document);
  if (bar && one("[data-live]")) {
    bar.hidden = false;
    showAge();
    schedule();
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : poll()));
  setInterval(() => {
    if (document.hidden) return;
    showAge();
    showTimes();
  }, 1000);
  const again = one("[data-retry]");
  if (again) setTimeout(() => location.reload(), Number(again.dataset.retry) * 1000);
})();
