package guard

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// SessionCookie is the name of the cookie of a browser that has logged in.
	SessionCookie = "holdfast_session"
	// SessionLasts is how long a session lasts, whether it is used or not.
	SessionLasts = 12 * time.Hour
	// LinkLasts is how long a link can be used.
	LinkLasts = time.Minute
)

// Errors of logins, besides ErrForbidden, job.ErrUnavailable and a *ThrottledError.
var (
	// ErrWrongCredentials says that there is no such user, password or token.
	ErrWrongCredentials = errors.New("the credentials are wrong")
	// ErrNoLink says that a link was used already, that its time is over, or that whoever made
	// it has other credentials now.
	ErrNoLink = errors.New("the link was used before, or is older than a minute")
)

// ThrottledError says that a client has sent too many wrong credentials, or too much.
type ThrottledError struct {
	Why string
	// Wait is how long until it may try again.
	Wait time.Duration
}

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("%s; try again in %d s", e.Why, wholeSeconds(e.Wait))
}

// Logins keeps sessions and links. Every method can return job.ErrUnavailable, or the error
// of a context that is done.
type Logins interface {
	BeginSession(ctx context.Context, l job.Login) error
	// Session returns job.ErrNoLogin if there is no session with that digest, or its time is
	// over.
	Session(ctx context.Context, digest [32]byte) (job.Login, error)
	EndSession(ctx context.Context, digest [32]byte) error
	MakeLink(ctx context.Context, l job.Login) error
	// TakeLink returns a link once. After that, it returns job.ErrNoLogin.
	TakeLink(ctx context.Context, digest [32]byte) (job.Login, error)
}

// Sessions are the logins of browsers, for the pages of the UI and nothing else. A session is
// a cookie with a random secret. The database has its digest, and who it is for. What they
// may do is looked up in the configuration for every request, so a session ends with the
// token or the password that began it.
//
// If the guard has no credentials, everybody is logged in.
type Sessions struct {
	guard   *Guard
	logins  Logins
	sighted sightings
}

// NewSessions returns the sessions in a store. Both may be nil if everybody may do everything.
func NewSessions(g *Guard, logins Logins) *Sessions {
	return &Sessions{guard: g, logins: logins, sighted: newSightings(logins)}
}

// Open reports whether nobody needs to log in.
func (s *Sessions) Open() bool { return s.guard == nil || s.guard.access == nil }

// Recognise identifies who asks for a page, by the cookie. It must come before Admit, which
// identifies those with other credentials. It sends browsers without a session to the page
// for logging in, and touches nothing outside of /ui.
func (s *Sessions) Recognise(refuse Refuse) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isUI(r.URL.Path) {
				next.ServeHTTP(w, r)
				return
			}
			ctx := context.WithValue(r.Context(), personKey{}, false)
			if s.Open() || len(r.Header["Authorization"]) > 0 {
				next.ServeHTTP(w, r.WithContext(ctx))
				return
			}
			known, err := s.find(ctx, cookieOf(r))
			switch {
			case err != nil:
				s.cannotSay(w, r, err, refuse)
			case known == nil && !isOpenUI(r.URL.Path):
				sendToLogin(w, r, refuse)
			default:
				if known != nil {
					ctx = context.WithValue(context.WithValue(ctx, personKey{}, true), callerKey{}, known)
				}
				next.ServeHTTP(w, r.WithContext(ctx))
			}
		})
	}
}

// cannotSay answers if it is not known whether there is such a session.
func (s *Sessions) cannotSay(w http.ResponseWriter, r *http.Request, err error, refuse Refuse) {
	var throttled *ThrottledError
	if errors.As(err, &throttled) {
		refuse(w, http.StatusTooManyRequests, err.Error())
		return
	}
	s.guard.log.WarnContext(r.Context(), "session not looked up", "error", err)
	refuse(w, http.StatusServiceUnavailable, "the database does not answer, so nobody knows whether you are logged in")
}

// sendToLogin asks for no credentials in a header: browsers would ask for them in a window of
// their own. What is no page by itself is refused.
func sendToLogin(w http.ResponseWriter, r *http.Request, refuse Refuse) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Hf-Fragment") != "" {
		refuse(w, http.StatusUnauthorized, "you are not logged in, or not any more")
		return
	}
	http.Redirect(w, r, "/ui/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
}

// find returns nil if there is no such session.
func (s *Sessions) find(ctx context.Context, secret string) (*caller, error) {
	if secret == "" {
		return nil, nil
	}
	login, err := s.sighted.look(ctx, DigestOf(secret), s.mayAsk)
	switch {
	case errors.Is(err, job.ErrNoLogin):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.guard.access.bound(login, secret), nil
}

// Credentials are what somebody types in: a user and a password, or a token.
type Credentials struct{ User, Password, Token string }

// Begin logs somebody in: it begins a session and sets its cookie, in place of an earlier one.
// The context that it returns has the caller, as far as that is known. Wrong credentials count
// like those in a header. If everybody is logged in, it does nothing.
func (s *Sessions) Begin(w http.ResponseWriter, r *http.Request, shown Credentials) (context.Context, error) {
	if s.Open() {
		return r.Context(), nil
	}
	known, allowed := s.guard.attempt(r.Context(), func() *caller {
		switch {
		case len(shown.User)+1+len(shown.Password) > MaxLogin || len(shown.Token) > maxCredential:
			return nil
		case shown.Token != "":
			return s.guard.access.holder(shown.Token)
		}
		return s.guard.access.login(shown.User, shown.Password)
	})
	switch {
	case known != nil:
		return s.begin(w, r, known)
	case !allowed.Allowed:
		return r.Context(), &ThrottledError{Why: "too many wrong credentials", Wait: allowed.Wait}
	}
	return r.Context(), ErrWrongCredentials
}

func (s *Sessions) begin(w http.ResponseWriter, r *http.Request, known *caller) (context.Context, error) {
	ctx := context.WithValue(r.Context(), callerKey{}, known)
	if err := s.guard.Permit(ctx, Observe); err != nil {
		return ctx, err
	}
	secret := newSecret()
	err := s.logins.BeginSession(r.Context(), job.Login{
		Digest: DigestOf(secret), Caller: known.name, Binding: known.binding(secret), Lasts: SessionLasts,
	})
	if err != nil {
		return ctx, err
	}
	if before := cookieOf(r); before != "" {
		// It would end by itself.
		_ = s.end(r.Context(), before)
	}
	http.SetCookie(w, s.cookie(r, secret, SessionLasts))
	return ctx, nil
}

// End logs out: it ends the session, and takes the cookie back even if the database does not
// answer. Processes that have just seen the session may honour it for some seconds more.
func (s *Sessions) End(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, s.cookie(r, "", -time.Second))
	if secret := cookieOf(r); secret != "" && !s.Open() {
		return s.end(r.Context(), secret)
	}
	return nil
}

func (s *Sessions) end(ctx context.Context, secret string) error {
	digest := DigestOf(secret)
	err := s.logins.EndSession(ctx, digest)
	s.sighted.forget(digest)
	return err
}

// Link makes a code that logs the caller in once, within LinkLasts. It returns ErrForbidden if
// the caller may not see pages.
func (s *Sessions) Link(ctx context.Context) (code string, err error) {
	known := callerOf(ctx)
	if err := s.guard.Permit(ctx, Observe); err != nil {
		return "", err
	}
	code = newSecret()
	return code, s.logins.MakeLink(ctx, job.Login{
		Digest: DigestOf(code), Caller: known.name, Binding: known.binding(code), Lasts: LinkLasts,
	})
}

// Redeem begins a session for whoever made the code, as Begin does. The code is used up even if
// it fails.
func (s *Sessions) Redeem(w http.ResponseWriter, r *http.Request, code string) (context.Context, error) {
	if s.Open() {
		return r.Context(), nil
	}
	if err := s.mayAsk(r.Context()); err != nil {
		return r.Context(), err
	}
	login, err := s.logins.TakeLink(r.Context(), DigestOf(code))
	if err != nil && !errors.Is(err, job.ErrNoLogin) {
		return r.Context(), err
	}
	known := s.guard.access.bound(login, code)
	if known == nil {
		return r.Context(), ErrNoLink
	}
	return s.begin(w, r, known)
}

// mayAsk returns nil if the database may be asked about a secret. Whoever makes up secrets must
// not keep it busy.
func (s *Sessions) mayAsk(ctx context.Context) error {
	if allowance := s.guard.Take(ctx, Reads, 1); !allowance.Allowed {
		return &ThrottledError{Why: allowance.Detail, Wait: allowance.Wait}
	}
	return nil
}

// newSecret returns 256 random bits, as text.
func newSecret() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It never fails.
	return base64.RawURLEncoding.EncodeToString(secret)
}

// cookieOf returns the secret that the cookie of the request has; empty for none.
func cookieOf(r *http.Request) string {
	if cookie, err := r.Cookie(SessionCookie); err == nil && len(cookie.Value) <= maxCredential {
		return cookie.Value
	}
	return ""
}

func (s *Sessions) cookie(r *http.Request, secret string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: SessionCookie, Value: secret, Path: "/ui", MaxAge: int(lasts.Seconds()),
		Secure: s.guard.cameByTLS(r), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}
