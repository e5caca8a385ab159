package v1

// LoginLink logs a browser in.
type LoginLink struct {
	Path             string `json:"path" example:"/ui/link?code=…" doc:"Where to send the browser, on this server. Whoever opens it first is logged in as you: keep it to yourself."`
	ExpiresInSeconds int    `json:"expiresInSeconds,omitempty" doc:"How long it can be used, once. Absent if nobody needs to log in."`
}
