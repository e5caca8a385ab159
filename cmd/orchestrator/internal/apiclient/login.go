package apiclient

import "net/http"

// Login is the client's credentials; the zero value is none.
type Login struct {
	// Token is sent in place of user and password, unless it is empty.
	Token    string
	User     string
	Password string
	// Source is where the credentials came from, or why there are none, for errors.
	Source string
}

func (l Login) empty() bool { return l.Token == "" && l.Password == "" && l.User == "" }

// Sign adds the credentials to a request.
func (l Login) Sign(request *http.Request) {
	switch {
	case l.Token != "":
		request.Header.Set("Authorization", "Bearer "+l.Token)
	case !l.empty():
		request.SetBasicAuth(l.User, l.Password)
	}
}

// advice says what the user can do about an answer that refuses the credentials.
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
