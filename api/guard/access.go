package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// maxCredential is the longest header that is accepted: a token of 1 KiB with the
// name of its scheme, or as much base64 of user and password.
const maxCredential = 1<<10 + len("Bearer ")

// MaxLogin is how many bytes user, colon and password may have together, to fit
// into maxCredential.
const MaxLogin = 768

// Digest is the SHA-256 of a secret. It identifies the secret but cannot be used in
// its place.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Access is the known callers.
type Access struct {
	// User and Password are for HTTP Basic. This caller has every scope, for every
	// tenant. User is also its name for operators.
	User     string
	Password Digest
	// NoPassword allows only tokens.
	NoPassword bool
	Tokens     []Token
	// Closed requires credentials on every path except the probes. If it is false,
	// clients on this machine may submit and read without credentials.
	Closed bool
}

// Token is a bearer token, known by its digest.
type Token struct {
	// Name is for operators; it is unique.
	Name   string
	Digest Digest
	// Scopes are those in its list. It may have others with them: see Scope.
	Scopes []Scope
	// Tenant is the only one that the caller may act for; empty for any.
	Tenant string
}

// access is Access in the form for comparisons.
type access struct {
	user, password Digest
	// admin is nil when there is no password.
	admin  *caller
	tokens []Token
	// holders are the callers of the tokens, in the same order.
	holders []*caller
	closed  bool
}

func (a *Access) digest() *access {
	known := &access{user: DigestOf(a.User), password: a.Password, tokens: a.Tokens, closed: a.Closed}
	if !a.NoPassword {
		known.admin = &caller{name: a.User, scopes: Scopes(), credential: a.Password}
	}
	for _, token := range a.Tokens {
		known.holders = append(known.holders, &caller{
			name: "token " + token.Name, scopes: granted(token.Scopes), tenant: token.Tenant, credential: token.Digest,
		})
	}
	return known
}

// recognise returns the caller whose credentials the request has, or nil if they
// are wrong.
func (a *access) recognise(r *http.Request) *caller {
	shown := r.Header.Values("Authorization")
	if len(shown) != 1 || len(shown[0]) > maxCredential {
		return nil
	}
	if user, password, ok := r.BasicAuth(); ok {
		return a.login(user, password)
	}
	scheme, token, _ := strings.Cut(shown[0], " ")
	if token = strings.TrimLeft(token, " "); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return nil
	}
	return a.holder(token)
}

// login takes the same time whether user or password is wrong.
func (a *access) login(user, password string) *caller {
	sameUser, samePassword := same(DigestOf(user), a.user), same(DigestOf(password), a.password)
	if sameUser&samePassword == 1 {
		return a.admin
	}
	return nil
}

// holder compares with all tokens, even after a match.
func (a *access) holder(token string) *caller {
	shown := DigestOf(token)
	var found *caller
	for i, known := range a.tokens {
		if same(shown, known.Digest) == 1 {
			found = a.holders[i]
		}
	}
	return found
}

// bound returns the caller whose login it is, as the caller is now; nil if the caller is gone,
// or its credential has changed since. The secret is that of the login's digest.
func (a *access) bound(l job.Login, secret string) *caller {
	callers := a.holders
	if a.admin != nil {
		callers = append([]*caller{a.admin}, callers...)
	}
	for _, known := range callers {
		if known.name == l.Caller && hmac.Equal(known.binding(secret), l.Binding) {
			return known
		}
	}
	return nil
}

// binding is a hash of the caller's credential with the secret of a login as its key. The
// secret is random, so the hash tells nothing about the credential.
func (c *caller) binding(secret string) []byte {
	hash := hmac.New(sha256.New, []byte(secret))
	hash.Write([]byte(c.name + "\x00"))
	hash.Write(c.credential[:])
	return hash.Sum(nil)
}

func same(a, b Digest) int { return subtle.ConstantTimeCompare(a[:], b[:]) }
