package guard

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// maxCredential bounds the header that is looked at: a token of 1 KiB with
// the name of its scheme, or as much of user and password in base64.
const maxCredential = 1<<10 + len("Bearer ")

// MaxLogin is how many bytes user, colon and password may have together: what
// a header of maxCredential bytes has room for.
const MaxLogin = 768

// Digest is the SHA-256 of a secret. A digest is enough to recognise the
// secret and cannot be sent in its place.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// Access is the callers that are known.
type Access struct {
	// User and Password are for HTTP Basic. They have every scope, for every
	// tenant.
	User     string
	Password Digest
	// NoPassword is for callers with tokens alone.
	NoPassword bool
	Tokens     []Token
	// Closed asks for credentials on every path but the probes. Otherwise
	// submitting and reading need none.
	Closed bool
}

// Token is a bearer token, known by its digest.
type Token struct {
	// Name is for operators; it is unique.
	Name   string
	Digest Digest
	Scopes []Scope
	// Tenant is the only one that its holder may act for; empty for any.
	Tenant string
}

// access is Access in the form that comparisons need.
type access struct {
	user, password Digest
	// admin is nil when there is no password.
	admin  *caller
	tokens []Token
	// holders has the caller of each token.
	holders []*caller
	closed  bool
}

func (a *Access) digest() *access {
	known := &access{user: DigestOf(a.User), password: a.Password, tokens: a.Tokens, closed: a.Closed}
	if !a.NoPassword {
		known.admin = &caller{name: "user", scopes: Scopes()}
	}
	for _, token := range a.Tokens {
		known.holders = append(known.holders, &caller{
			name: "token " + token.Name, scopes: token.Scopes, tenant: token.Tenant,
		})
	}
	return known
}

// recognise returns the caller whose credentials the request shows, or nil
// when they are nobody's.
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

// login takes the same time whichever of the two is wrong.
func (a *access) login(user, password string) *caller {
	sameUser, samePassword := same(DigestOf(user), a.user), same(DigestOf(password), a.password)
	if sameUser&samePassword == 1 {
		return a.admin
	}
	return nil
}

// holder compares with all tokens, also after it has found the one.
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

func same(a, b Digest) int { return subtle.ConstantTimeCompare(a[:], b[:]) }
