package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/assets"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

//go:embed templates/*.html
var sources embed.FS

// templates has a set for each page: its own file, layout.html, parts.html and schemaform.html.
var templates = sync.OnceValue(func() map[string]*template.Template {
	common := template.Must(template.New("").Funcs(functions).ParseFS(sources, "templates/layout.html", "templates/parts.html", "templates/schemaform.html"))
	files, _ := fs.Glob(sources, "templates/*.html") // The pattern is good.
	sets := map[string]*template.Template{}
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name == "layout" || name == "parts" || name == "schemaform" {
			continue
		}
		sets[name] = template.Must(template.Must(common.Clone()).ParseFS(sources, file))
	}
	return sets
})

// view is a page to show.
type view struct {
	// Template is the name of a file in templates, without its ending.
	Template, Title string
	Data            any
	// Status is 200 if it is 0.
	Status int
	// Problem is why the form of the page was refused; nil if it was not. Status is then the
	// problem's.
	Problem *v1.Problem
	// Shows is a comparable value that says which figures the live part shows, if nothing else
	// but the caller's rights and preferences has a say in it; nil if it has.
	Shows any
	// Scripts are assets that this page needs beside app.js.
	Scripts []string
	// Styles are assets that this page needs beside app.css.
	Styles []string
}

// frame is what templates get.
type frame struct {
	view
	*visit
	Caller  string
	Notice  *notice
	Nav     []navEntry
	Prefs   preferences
	Version string
	// Path is that of the page, with its query, to come back to.
	Path string
	// CanLogOut is set if the caller has a session.
	CanLogOut bool
}

// Home is the first page of the navigation that the caller may see.
func (f frame) Home() navEntry {
	if at := slices.IndexFunc(f.Nav, func(e navEntry) bool { return e.Denied == "" }); at >= 0 {
		return f.Nav[at]
	}
	return navEntry{Label: "Overview", Path: Root + "/"}
}

type navEntry struct {
	Label, Path, Key string
	Current          bool
	// Denied says why the caller sees nothing there.
	Denied string
}

func (w view) write(v *visit) {
	if w.Problem != nil {
		w.Status = w.Problem.Status
	}
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	shown := frame{view: w, visit: v, Prefs: v.prefs, Path: v.request.URL.RequestURI()}
	if v.site != nil {
		v.now = v.Now() // A reading may have taken seconds.
		shown.Caller, shown.Version, shown.CanLogOut = guard.Name(v.context()), v.Version, guard.HasSession(v.context())
		if shown.Caller != "" || v.Sessions.Open() {
			shown.Nav = v.navigation()
		}
	}
	name := "layout"
	if v.fragment != "" {
		name = v.fragment
	} else {
		shown.Notice = takeNotice(v.writer, v.request)
	}
	set := templates()[w.Template]
	if set == nil || set.Lookup(name) == nil || v.fragment != "" && !strings.HasPrefix(name, "live-") {
		http.Error(v.writer, "there is no such part of the page", http.StatusNotFound)
		return
	}
	key, shared := w.key(v)
	if shared {
		if body := v.rendered.get(key); body != nil {
			v.deliver(body, w.Status)
			return
		}
	}
	body := &bytes.Buffer{}
	if err := set.ExecuteTemplate(body, name, shown); err != nil {
		if v.site != nil {
			v.Log.ErrorContext(v.context(), "page failed", "path", v.request.URL.Path, "error", err)
		}
		http.Error(v.writer, "internal error", http.StatusInternalServerError)
		return
	}
	if shared {
		v.rendered.put(key, body.Bytes())
	}
	v.deliver(body.Bytes(), w.Status)
}

// deliver sends a page, compressed if the client can read that. A live part that has not changed
// is answered 304.
func (v *visit) deliver(body []byte, status int) {
	header := v.writer.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	if v.fragment != "" && status == http.StatusOK {
		digest := sha256.Sum256(body)
		tag := `"` + hex.EncodeToString(digest[:12]) + `"`
		header.Set("Etag", tag)
		if v.request.Header.Get("If-None-Match") == tag {
			v.writer.WriteHeader(http.StatusNotModified)
			return
		}
	}
	if strings.Contains(v.request.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		body = compress(body)
	}
	header.Set("Vary", "Accept-Encoding, Hf-Fragment")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	v.writer.WriteHeader(status)
	_, _ = v.writer.Write(body) // It fails when the client has left.
}

func (v *visit) navigation() []navEntry {
	current := pageOf(strings.TrimPrefix(v.request.URL.Path, Root))
	var entries []navEntry
	for _, p := range pages() {
		if p.routes == nil || p.ofCells && v.Cells == nil {
			continue
		}
		entry := navEntry{Label: p.label, Path: Root + p.path, Key: p.key, Current: current == p.path, Denied: v.denied(p.scope)}
		if p.allTenants {
			entry.Denied = v.deniedAll(p.scope)
		}
		entries = append(entries, entry)
	}
	return entries
}

// Denied says why the caller may not use what needs the scope; empty if it may.
func (f frame) Denied(scope string) string { return f.denied(guard.Scope(scope)) }

// DeniedAll is Denied for what concerns all tenants.
func (f frame) DeniedAll(scope string) string { return f.deniedAll(guard.Scope(scope)) }

// Mistake is what is wrong at a place of the form, such as #/reason; empty for nothing.
func (f frame) Mistake(place string) string { return mistakeAt(f.Problem, place) }

// mistakeAt is what a refusal, which may be nil, says of a place.
func mistakeAt(refused *v1.Problem, place string) string {
	if refused == nil {
		return ""
	}
	for _, mistake := range refused.Errors {
		if mistake.Location == place {
			return mistake.Message
		}
	}
	return ""
}

// asset is the path of a style sheet, script or picture.
func asset(name string) (string, error) { return assets.Path(name) }
