package api

import (
	"context"

	"github.com/holdfast-jobs/holdfast/api/guard"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// loginRoutes let programs log a browser in.
type loginRoutes struct {
	sessions *guard.Sessions
}

func (l *loginRoutes) add(r *router) {
	add(r, "POST /login-links", "make-login-link", guard.Observe, l.link)
}

func (l *loginRoutes) link(ctx context.Context, _ *call) (*body[v1.LoginLink], error) {
	if l.sessions.Open() {
		return &body[v1.LoginLink]{v1.LoginLink{Path: "/ui/"}}, nil
	}
	code, err := l.sessions.Link(ctx)
	return bodyOf(code, err, func(code string) v1.LoginLink {
		return v1.LoginLink{Path: "/ui/link?code=" + code, ExpiresInSeconds: int(guard.LinkLasts.Seconds())}
	})
}
