package plugin

import "context"

// Baggage returns the W3C baggage that the client has sent with the job of the
// attempt that ctx belongs to, for requests that the handler makes. It is empty
// when there is none.
func Baggage(ctx context.Context) string {
	if a := current(ctx); a != nil {
		return a.start.GetBaggage()
	}
	return ""
}
