package ui

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/holdfast-jobs/holdfast/api/audit"
	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// login adds the pages that need no session.
func (s *site) login(r chi.Router) {
	r.Get("/login", s.serve(showLogin))
	r.Post("/login", s.serve(logIn))
	r.Get("/link", s.serve(showLink))
	r.Post("/link", s.serve(followLink))
	r.Post("/logout", s.serve(logOut))
}

// loginForm is what the page shows. It never shows a secret again.
type loginForm struct {
	Next, User string
	// WithToken says that a token was tried.
	WithToken bool
}

func showLogin(v *visit) (answer, error) {
	next := nextOf(v.query("next"))
	if v.Sessions.Open() || guard.Name(v.context()) != "" {
		return back{To: next}, nil
	}
	return loginPage(loginForm{Next: next}, nil), nil
}

func loginPage(form loginForm, refused *v1.Problem) view {
	return view{Template: "login", Title: "Log in", Data: form, Problem: refused}
}

// nextOf is where to go after a login: a page of the UI, whatever the link said.
func nextOf(path string) string {
	if isOwn(path) {
		return path
	}
	return Root + "/"
}

func logIn(v *visit) (answer, error) {
	form := loginForm{Next: nextOf(v.form("next")), User: v.form("user"), WithToken: v.form("token") != ""}
	shown := guard.Credentials{User: form.User, Password: v.request.PostForm.Get("password"), Token: v.form("token")}
	ctx, err := v.Sessions.Begin(v.writer, v.request, shown)
	refused, err := v.began(ctx, err)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return loginPage(form, refused), nil
	}
	return back{To: form.Next}, nil
}

// began writes a login down, and returns why it was refused, if it was.
func (v *visit) began(ctx context.Context, err error) (*v1.Problem, error) {
	var throttled *guard.ThrottledError
	var refused *v1.Problem
	switch {
	case v.Sessions.Open():
		return nil, nil
	case err == nil:
		v.record(ctx, audit.SessionBegin, job.ActDone)
		return nil, nil
	case errors.As(err, &throttled):
		v.writer.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(throttled.Wait.Seconds()))))
		refused = v1.NewProblem(http.StatusTooManyRequests, sentence(err.Error()))
	case errors.Is(err, guard.ErrWrongCredentials):
		refused = v1.NewProblem(http.StatusUnauthorized, "The credentials are wrong.")
	case errors.Is(err, guard.ErrNoLink):
		refused = v1.NewProblem(http.StatusUnauthorized, sentence(err.Error()))
	case errors.Is(err, guard.ErrForbidden):
		refused = v1.NewProblem(http.StatusForbidden, "These credentials are not for the UI: they lack the scope observe.")
	case errors.Is(err, job.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		v.Log.WarnContext(ctx, "nobody can log in", "error", err)
		refused = v1.Unavailable("The database does not answer, so nobody can log in. Try again.")
	default:
		return nil, err
	}
	v.record(ctx, audit.SessionRefused, "refused: "+refused.Detail)
	return refused, nil
}

// record writes down what happened with a session, and from where.
func (v *visit) record(ctx context.Context, action, result string) {
	from, _ := json.Marshal(map[string]string{"client": middleware.GetClientIP(ctx)})
	v.Acts.Write(ctx, job.Act{Action: action, Filter: from, Result: result})
}

// linkForm is what a page shows before a link is used: programs that look at links ahead of
// people would use it up.
type linkForm struct{ Code, Next string }

func showLink(v *visit) (answer, error) {
	if v.Sessions.Open() {
		return back{To: Root + "/"}, nil
	}
	return view{Template: "link", Title: "Log in", Data: linkForm{Code: v.query("code"), Next: nextOf(v.query("next"))}}, nil
}

func followLink(v *visit) (answer, error) {
	ctx, err := v.Sessions.Redeem(v.writer, v.request, v.form("code"))
	refused, err := v.began(ctx, err)
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return loginPage(loginForm{Next: nextOf(v.form("next"))}, refused), nil
	}
	return back{To: nextOf(v.form("next"))}, nil
}

func logOut(v *visit) (answer, error) {
	result := job.ActDone
	if err := v.Sessions.End(v.writer, v.request); err != nil {
		v.Log.WarnContext(v.context(), "session not ended", "error", err)
		result = "only in the browser: the database did not answer"
	}
	if guard.HasSession(v.context()) {
		v.record(v.context(), audit.SessionEnd, result)
	}
	return back{To: Root + "/login", Notice: "Logged out."}, nil
}
