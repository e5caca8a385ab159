package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Handler is a handler plugin of the orchestrator that was asked.
type Handler struct {
	HandlerVersion
	Name       string            `json:"name"`
	Path       string            `json:"path"`
	State      string            `json:"state"`
	JobTypes   []string          `json:"jobTypes"`
	LeftOut    []string          `json:"jobTypesLeftOut"`
	PIDs       []int             `json:"pids"`
	Processes  int               `json:"processes"`
	Running    int               `json:"running"`
	Free       int               `json:"free"`
	Alone      int               `json:"alone"`
	Draining   int               `json:"draining"`
	Restarts   int               `json:"restarts"`
	Crashes    int               `json:"crashes"`
	LastError  string            `json:"lastError"`
	PassedOver string            `json:"passedOver"`
	Candidate  *HandlerCandidate `json:"candidate"`
	LastSwap   *HandlerSwap      `json:"lastSwap"`
}

// HandlerVersion tells one version of a handler from another.
type HandlerVersion struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// HandlerCandidate is a version that runs beside the one that serves.
type HandlerCandidate struct {
	HandlerVersion
	State   string `json:"state"`
	PIDs    []int  `json:"pids"`
	Running int    `json:"running"`
	HandlerTrial
}

// HandlerTrial compares a candidate with the version that serves.
type HandlerTrial struct {
	Ended         int          `json:"ended"`
	Failed        int          `json:"failed"`
	ServingEnded  int          `json:"servingEnded"`
	ServingFailed int          `json:"servingFailed"`
	Slowest       *HandlerPace `json:"slowest"`
}

// HandlerPace compares how long attempts at a job type take.
type HandlerPace struct {
	JobType       string  `json:"jobType"`
	MedianSeconds float64 `json:"medianSeconds"`
	UsualSeconds  float64 `json:"usualSeconds"`
}

// HandlerSwap is one replacement of the version that serves.
type HandlerSwap struct {
	Trigger string         `json:"trigger"`
	From    HandlerVersion `json:"from"`
	To      HandlerVersion `json:"to"`
	BegunAt time.Time      `json:"begunAt"`
	EndedAt *time.Time     `json:"endedAt"`
	Result  string         `json:"result"`
	Trial   *HandlerTrial  `json:"trial"`
	Reason  string         `json:"reason"`
}

// Promoted is the result of a swap after which the new version serves.
const Promoted = "promoted"

// HandlerList is all handlers of one orchestrator.
type HandlerList struct {
	Handlers []Handler `json:"handlers"`
}

// Handlers lists the handlers of the orchestrator.
func (c *Client) Handlers(ctx context.Context) (Answer, error) {
	return c.Get(ctx, "/debug/handlers", nil)
}

// OnHandler asks the orchestrator to do something with a handler. A swap may
// answer while it is still under way.
func (c *Client) OnHandler(ctx context.Context, name, action string, query url.Values) (Answer, error) {
	return c.call(ctx, http.MethodPost, pathOf("debug", "handlers", name, action), query, nil, usualTime)
}
