package client

import "net/http"

// Login is who the client says it is; the zero value says nothing.
type Login struct {
	// Token, unless it is empty, is sent instead of user and password.
	Token    string
	User     string
	Password string
	// Source says where the credentials came from, for errors, or why there
	// are none.
	Source string
}

func (l Login) empty() bool { return l.Token == "" && l.Password == "" && l.User == "" }

func (l Login) sign(request *http.Request) {
	switch {
	case l.Token != "":
		request.Header.Set("Authorization", "Bearer "+l.Token)
	case !l.empty():
		request.SetBasicAuth(l.User, l.Password)
	}
}

// advice says what a caller can do about an answer that refuses him.
func (l Login) advice(status int) string {
	switch {
	case status == http.StatusUnauthorized && l.empty():
		advice := "Set HOLDFAST_TOKEN, or HOLDFAST_USER and HOLDFAST_PASSWORD."
		if l.Source != "" {
			advice = l.Source + ". " + advice
		}
		return advice
	case status == http.StatusUnauthorized:
		return "The credentials " + l.Source + " were not accepted. " +
			"Set HOLDFAST_TOKEN, or HOLDFAST_USER and HOLDFAST_PASSWORD."
	case status == http.StatusForbidden && !l.empty():
		return "The credentials " + l.Source + " do not allow this. " +
			"Set HOLDFAST_TOKEN to a token that does, or HOLDFAST_USER and HOLDFAST_PASSWORD."
	}
	return ""
}
