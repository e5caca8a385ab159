package ui

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/assets"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Root is the path that the UI is under.
const Root = "/ui"

// Config is what New needs.
type Config struct {
	// API serves the operations of the API to the caller in the context of a request.
	API http.Handler
	// Cells are those that API speaks for; nil if it speaks for one server.
	Cells Cells
	// Guard says what callers may do; nil for everything.
	Guard *guard.Guard
	// Sessions are those of Guard; nil for none.
	Sessions *guard.Sessions
	// Acts is where logins are written down; nil for nowhere.
	Acts *audit.Recorder
	Log  *slog.Logger
	// Version is that of the program.
	Version string
	// MaxFormBytes bounds the body of a form.
	MaxFormBytes int64
	// CountWithin is how long a page waits for figures whose cost grows with the number of jobs;
	// 150 ms if it is 0. Without them, it says that they are being counted.
	CountWithin time.Duration
	// ReadWithin bounds the time from the arrival of a request until all readings of the API for its
	// page are over, so that it appears although the database does not answer; 2.5 s if it is 0.
	ReadWithin time.Duration
	// Now is the time that pages are rendered at; nil for time.Now.
	Now func() time.Time
}

const (
	// countWithin is half of what a page may take beside millions of jobs.
	countWithin = 150 * time.Millisecond
	readWithin  = 2500 * time.Millisecond
)

// site is the UI.
type site struct {
	Config
	api       *client.Client
	figures   *snapshot.Cache
	counts    *snapshot.Counts
	diagnoses *diagnoses
	rendered  *rendered
}

// New returns the handler of everything under Root. Its requests must have passed Frame and
// guard.Admit.
func New(c Config) http.Handler {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sessions == nil {
		c.Sessions = guard.NewSessions(c.Guard, nil)
	}
	if c.Acts == nil {
		c.Acts = audit.NewRecorder(nil, c.Log, "")
	}
	c.CountWithin, c.ReadWithin = cmp.Or(c.CountWithin, countWithin), cmp.Or(c.ReadWithin, readWithin)
	s := &site{Config: c, api: client.New(c.API), figures: &snapshot.Cache{}, counts: snapshot.NewCounts(), diagnoses: &diagnoses{}, rendered: &rendered{}}
	routes := chi.NewMux()
	routes.Use(middleware.GetHead)
	routes.Get(Root, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, Root+"/", http.StatusSeeOther) })
	routes.Get(assets.Root+"*", assets.ServeHTTP)
	routes.Route(Root, func(r chi.Router) {
		s.login(r)
		for _, p := range pages() {
			switch {
			case p.routes == nil, p.ofCells && c.Cells == nil:
			case p.ofOneCell && c.Cells != nil:
				s.chooseCell(r, p.path)
			default:
				p.routes(s, r)
			}
		}
	})
	routes.NotFound(s.serve(func(*visit) (answer, error) {
		return nil, v1.NewProblem(http.StatusNotFound, "There is no such page.")
	}))
	routes.MethodNotAllowed(s.serve(func(*visit) (answer, error) {
		return nil, v1.NewProblem(http.StatusMethodNotAllowed, "This page cannot be used in this way.")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The context may have the route of the server.
		routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, nil)))
	})
}
