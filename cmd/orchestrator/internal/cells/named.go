package cells

import (
	"fmt"
	"net/http"
	"sync"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// mismatch returns the answer for a request whose server says that it is of another cell than
// was named; nil if it is of that one, or does not say.
func (s Server) mismatch(r *http.Request, answer *http.Response) *http.Response {
	says := answer.Header.Get(v1.CellHeader)
	if s.Cell == (job.Cell{}) || says == "" || says == s.Cell.String() {
		return nil
	}
	return refusal(r, http.StatusMisdirectedRequest,
		fmt.Sprintf("%s is cell %s, and you named it as cell %s: correct --server, HOLDFAST_SERVER or the file of --cells", s.URL, says, s.Cell))
}

// Named carries the requests of a client to one server, which was named with its cell. It
// asks the server which it is before the first request, so that none changes another cell.
type Named struct {
	Server  Server
	Carrier http.RoundTripper

	mu      sync.Mutex
	matches bool
}

// CloseIdleConnections is what http.Client calls.
func (n *Named) CloseIdleConnections() { closeIdle(n.Carrier) }

// RoundTrip implements http.RoundTripper.
func (n *Named) RoundTrip(r *http.Request) (*http.Response, error) {
	refused, err := n.check(r)
	if err != nil || refused != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return refused, err
	}
	return n.Carrier.RoundTrip(r)
}

func (n *Named) check(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.matches {
		return nil, nil
	}
	probe, err := http.NewRequestWithContext(r.Context(), http.MethodGet, n.Server.URL+"/healthz", nil)
	if err != nil {
		return nil, err
	}
	answer, err := n.Carrier.RoundTrip(probe)
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	refused := n.Server.mismatch(r, answer)
	n.matches = refused == nil
	return refused, nil
}
