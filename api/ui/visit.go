package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// visit is one request for a page.
type visit struct {
	*site
	request *http.Request
	writer  http.ResponseWriter
	// readUntil is when readings of the API are given up.
	readUntil time.Time
	// now is when the request came, and then when the page is rendered.
	now   time.Time
	prefs preferences
	// fragment is the name of the live part that is asked for; empty for the whole page.
	fragment string
}

// answer is what a handler of a page returns: a view, or back.
type answer interface {
	write(v *visit)
}

// back ends an act: the browser shows another page, with a notice.
type back struct {
	// To is a path under Root.
	To string
	// Notice says what was done; empty for nothing.
	Notice string
	// Undo takes it back; nil if that cannot be done.
	Undo *undo
}

// serve answers with what the handler returns.
func (s *site) serve(handle func(*visit) (answer, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{
			site: s, request: r, writer: w, readUntil: arrivalOf(r).Add(s.ReadWithin), now: s.Now(), prefs: preferencesOf(r),
			fragment: r.Header.Get("Hf-Fragment"),
		}
		if err := v.readForm(); err != nil {
			v.fail(err)
			return
		}
		answered, err := handle(v)
		if err != nil {
			v.fail(err)
			return
		}
		answered.write(v)
	}
}

// readForm reads the body of a form, if it is one, so that form and formValues find it.
func (v *visit) readForm() error {
	if v.request.Method == http.MethodGet || v.request.Method == http.MethodHead {
		return nil
	}
	v.request.Body = http.MaxBytesReader(v.writer, v.request.Body, v.MaxFormBytes)
	if err := v.request.ParseForm(); err != nil {
		return v1.NewProblem(http.StatusBadRequest, fmt.Sprintf("The form could not be read. It may have up to %d bytes.", v.MaxFormBytes))
	}
	return nil
}

func (v *visit) context() context.Context { return v.request.Context() }

// get reads from the API into a pointer to a type of api/v1.
func (v *visit) get(path string, query url.Values, into any) error {
	ctx, cancel := context.WithDeadline(v.context(), v.readUntil)
	defer cancel()
	asked := client.Request{Method: http.MethodGet, Path: path, Query: query}
	if _, err := v.request.Cookie(noticeCookie); err == nil {
		// The page after an act shows what it has changed, which a replica may not have yet.
		asked.Header = http.Header{"Cache-Control": {"no-cache"}}
	}
	return v.api.Call(ctx, asked, into)
}

// send changes something through the API. body and into may be nil.
func (v *visit) send(method, path string, body, into any) error {
	return v.api.Send(v.context(), method, path, body, into)
}

// param is the part of the path that the route names.
func (v *visit) param(name string) string {
	text, err := url.PathUnescape(chi.URLParam(v.request, name))
	if err != nil {
		return chi.URLParam(v.request, name)
	}
	return text
}

// query is the first parameter of that name in the URL; empty for none.
func (v *visit) query(name string) string { return v.request.URL.Query().Get(name) }

// form is the first field of that name in the form that was sent, without spaces around it.
func (v *visit) form(name string) string { return strings.TrimSpace(v.request.PostForm.Get(name)) }

// formValues are all fields of that name in the form that was sent.
func (v *visit) formValues(name string) []string { return v.request.PostForm[name] }

// returnTo is where the field back of the form says that the user was, if that is in the UI, or
// else the path.
func (v *visit) returnTo(otherwise string) string {
	if to := v.form("back"); isOwn(to) {
		return to
	}
	return otherwise
}

// isOwn reports whether a path is in the UI, and cannot lead elsewhere.
func isOwn(to string) bool {
	parsed, err := url.Parse(to)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || strings.ContainsAny(to, "\\\r\n") {
		return false
	}
	clean := path.Clean(parsed.Path) // Browsers go up at "..".
	return clean == Root || strings.HasPrefix(clean, Root+"/")
}

// denied says why the caller may not use what needs the scope; empty if it may.
func (v *visit) denied(scope guard.Scope) string {
	if scope == "" || v.Guard.Permit(v.context(), scope) == nil {
		return ""
	}
	return "Needs the scope " + string(scope) + ", which you do not have."
}

// deniedAll is denied for what concerns all tenants.
func (v *visit) deniedAll(scope guard.Scope) string {
	if bound := guard.Tenant(v.context()); bound != "" {
		return "Concerns all tenants. You see " + bound + " only."
	}
	return v.denied(scope)
}

// rights has everything that decides what the caller can see.
func (v *visit) rights() string {
	text := &strings.Builder{}
	for _, scope := range guard.Scopes() {
		fmt.Fprintf(text, "%t ", v.denied(scope) == "")
	}
	return text.String() + guard.Tenant(v.context())
}

// shared reads from the API what all callers with the same rights share. See package snapshot.
// Nobody may change the figures.
func shared[T any](v *visit, path string, query url.Values) (snapshot.Figures[*T], error) {
	return figures[T](v, snapshot.Steady, path, query)
}

// counted is shared for figures that cost more, the more jobs there are. The page does not wait
// until many jobs are counted for the first time: then the figures are pending, and their value is
// nil. A caller without the right is refused at once.
func counted[T any](v *visit, path string, query url.Values) (snapshot.Figures[*T], error) {
	if why := v.denied(guard.Observe); why != "" {
		return snapshot.Figures[*T]{}, v1.NewProblem(http.StatusForbidden, why)
	}
	return figures[T](v, snapshot.Growing, path, query)
}

// countedForAll is counted for what concerns all tenants.
func countedForAll[T any](v *visit, path string, query url.Values) (snapshot.Figures[*T], error) {
	if why := v.deniedAll(guard.Observe); why != "" {
		return snapshot.Figures[*T]{}, v1.NewProblem(http.StatusForbidden, why)
	}
	return figures[T](v, snapshot.Growing, path, query)
}

// metrics are those of the whole system. The window of what happened lately is the usual one, so
// that all pages share them.
func (v *visit) metrics() (snapshot.Figures[*v1.Metrics], error) {
	return countedForAll[v1.Metrics](v, "/metrics", url.Values{"sinceMinutes": {strconv.Itoa(usualMinutes)}})
}

// series is what happened in the window to jobs of the type, or to all of them if it is empty.
func (v *visit) series(window v1.SeriesWindow, jobType string) (snapshot.Figures[*v1.Series], error) {
	query := url.Values{"window": {string(window)}}
	if jobType != "" {
		query.Set("jobType", jobType)
	}
	return countedForAll[v1.Series](v, client.Path("debug", "series"), query)
}

// figures are of the cells that answer, if there are several: those of fewer or more are not
// mistaken for them.
func figures[T any](v *visit, cost snapshot.Cost, path string, query url.Values) (snapshot.Figures[*T], error) {
	waiting, cancel := context.WithDeadline(v.context(), v.readUntil)
	defer cancel()
	for {
		present := v.present()
		key := present + "\n" + v.rights() + "\n" + path + "?" + query.Encode()
		found, err := snapshot.Get(waiting, v.figures, key, cost, v.CountWithin, func(ctx context.Context) (*T, error) {
			into := new(T)
			err := v.api.Get(ctx, path, query, into)
			if err == nil && v.present() != present {
				err = v1.Unavailable("a cell has stopped answering, or answers again")
			}
			return into, err
		})
		if err == nil || v.present() == present || waiting.Err() != nil {
			return found, err
		}
	}
}

// atOnce runs readings of figures beside one another, so that the page waits for the slowest only.
func atOnce(readings ...func() error) error {
	errs := make([]error, len(readings))
	var reading sync.WaitGroup
	for i, read := range readings {
		reading.Go(func() { errs[i] = read() })
	}
	reading.Wait()
	return cmp.Or(errs...)
}

func (b back) write(v *visit) {
	if b.Notice != "" {
		setNotice(v.writer, v.request, notice{Text: b.Notice, Undo: b.Undo})
	}
	http.Redirect(v.writer, v.request, b.To, http.StatusSeeOther)
}
