package client

import (
	"context"
	"net/http"
	"net/url"
)

// Plugins lists the plugins of the orchestrator.
func (c *Client) Plugins(ctx context.Context) (Answer, error) {
	return c.Get(ctx, "/debug/plugins", nil)
}

// OnPlugin asks the orchestrator to do something with a plugin. A swap may
// answer while it is still in progress.
func (c *Client) OnPlugin(ctx context.Context, name, action string, query url.Values) (Answer, error) {
	return c.call(ctx, http.MethodPost, pathOf("debug", "plugins", name, action), query, nil, usualTime)
}
