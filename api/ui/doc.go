// Package ui is the web UI: pages under /ui that are one more client of the API.
//
// A page calls the API's own operations in process, as the caller of its request. So it can show
// and do what the caller could with the API, and nothing else: scopes, tenants, withheld
// payloads, checks and limits are the API's. If a page needs what the API lacks, the API gets it
// first. Every view is a URL. Every act is a form, and works without JavaScript. app.js makes
// pages live, and adds keys and dialogs.
//
// # Add a page
//
// A page is a Go file, a template and a test, named alike.
//
//  1. thing.go: the routes and a handler for each. A handler gets a visit, and returns what to
//     answer: a view, or back after an act; or an error, such as that of the API, which becomes
//     a page with its reason.
//
//     func (s *site) things(r chi.Router) {
//     r.Get("/things", s.serve(showThings))
//     r.Post("/things/{name}/stop", s.serve(stopThing))
//     }
//
//     func showThings(v *visit) (answer, error) {
//     var list v1.ThingList
//     if err := v.get(client.Path("debug", "things"), nil, &list); err != nil {
//     return nil, err
//     }
//     return view{Template: "things", Title: "Things", Data: list}, nil
//     }
//
//     func stopThing(v *visit) (answer, error) {
//     name := v.param("name")
//     if err := v.send("POST", client.Path("debug", "things", name, "stop"), nil, nil); err != nil {
//     return nil, err
//     }
//     return back{To: v.returnTo("/ui/things"), Notice: "Stopped " + name + "."}, nil
//     }
//
//     Figures that all viewers may share, and that cost the database something, come from
//     shared instead of get. Those that cost more, the more jobs there are, come from counted:
//     while they are pending, the template has an element with the id counting in their place. If
//     an act is refused because of its fields, return the view of its form again, with Problem
//     set: {{$.Mistake "#/reason"}} is the message for a field.
//
//  2. templates/things.html defines "content", and a template for each part that is live. It gets
//     a frame: .Data is the view's. A live part has an id, data-live, and the name of its template
//     as id. app.js asks for it again and again, with the header Hf-Fragment, and changes only
//     what differs, so focus and boxes stay. Elements with an id keep their identity: give every row
//     one.
//
//     {{define "content"}}<div id="live-things" data-live>{{template "live-things" .}}</div>{{end}}
//
//     parts.html has what several pages use: state chips, act buttons, notices of old figures.
//     $.When shows a time, count a number, took a duration. Do not build these yourself.
//
//  3. things_test.go: the page as a golden, from a fake API (see newPages in ui_test.go), and each act.
//
//  4. pages.go: its entry in the list, which has a line for the routes of each page.
//
// # Attributes for app.js
//
//   - data-live: a part that is polled. data-src: another URL than the page's. data-every: seconds,
//     more than the setting.
//   - data-row: a row for the keys j and k; x ticks its box, Enter follows its first link.
//   - data-stay: no row of the list, which needs an id, moves when it is refreshed. One that is gone
//     stays, with this text as its state or where data-gone is, and one that comes waits.
//     data-changed: shown if there is any of them, or they have another order.
//   - data-select: a box that shift selects a range of; data-select-all ticks all.
//     data-selected shows how many are ticked; data-needs-selection is disabled while none is.
//   - data-dialog: opens the dialog with that id. On a link, which works without JavaScript too.
//     data-close closes it. The focus returns to the opener.
//   - data-typed: the text that must be typed before the form can be sent.
//   - data-announce: a text that is announced to screen readers when it changes. The element needs
//     an id.
//   - data-copy: copies the text of the element with that id.
//   - data-keep: app.js never changes what is below, unless the page is loaded again.
//   - data-from: a hidden field that gets the value of the field with that id, if there is one, when
//     its form is sent.
//   - data-submit: sends the form of a select when it changes.
//   - data-search: the field that / goes to.
//   - data-chart: drawn by charts.js from the columns of a table, which it says how to mark.
//   - data-retry: loads the page again after so many seconds.
//
// Inline scripts, inline styles, style attributes and on… attributes do not work: the content
// security policy forbids them, and a test fails.
package ui
