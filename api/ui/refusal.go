package ui

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// fail answers with an error. What is no refusal of the API is logged and not shown.
func (v *visit) fail(err error) {
	problem := client.ProblemOf(err)
	if problem == nil {
		v.Log.ErrorContext(v.context(), "page failed", "path", v.request.URL.Path, "error", err)
		problem = v1.NewProblem(http.StatusInternalServerError, "internal error")
	}
	shown := refusal(problem)
	if read := v.request.Method == http.MethodGet || v.request.Method == http.MethodHead; read && problem.Status == http.StatusMisdirectedRequest {
		shown.Status = http.StatusOK // It is a page that leads on.
	}
	shown.write(v)
}

// refused is what the page of a problem shows.
type refused struct {
	*v1.Problem
	// Advice says what to do.
	Advice string
	// OfOneCell shows the way to the cells.
	OfOneCell bool
	// LogIn shows the way to the page for logging in.
	LogIn bool
	// Retry is after how many seconds the page loads again by itself; 0 for never.
	Retry int
}

// refusal is the page of a problem.
func refusal(problem *v1.Problem) view {
	shown := refused{Problem: &v1.Problem{Title: problem.Title, Status: problem.Status, Detail: sentence(problem.Detail), Errors: problem.Errors}}
	title := problem.Title
	switch problem.Status {
	case http.StatusUnauthorized:
		title = "Log in"
		shown.LogIn = true
	case http.StatusMisdirectedRequest:
		title = "Choose a cell"
		shown.Detail, shown.OfOneCell = "Each cell has this for itself. Nothing was changed.", true
		shown.Advice = "These are the cells' own pages, which may ask you to log in."
	case http.StatusForbidden:
		title = "Not permitted"
		shown.Advice = "Ask for credentials with this right, or log in with others."
	case http.StatusNotFound:
		title = "Not found"
		shown.Advice = "It may never have existed, may have been deleted, or may belong to a tenant that you do not see."
	case http.StatusUnprocessableEntity:
		title = "Not accepted"
		if slices.ContainsFunc(problem.Errors, inAddress) {
			title = "Wrong address"
			shown.Detail = "A part of this page's address is wrong."
			shown.Advice = "Correct it, or look for the page that you want with the search at the top."
		}
	case http.StatusConflict:
		title = "Not possible now"
		shown.Advice = "Go back and load the page again: it may have changed in the meantime."
	case http.StatusServiceUnavailable:
		title = "No answer"
		shown.Retry = 5
		shown.Advice = "The page tries again every few seconds."
	case http.StatusInternalServerError:
		shown.Advice = "The log of the orchestrator says more."
	}
	return view{Template: "problem", Title: title, Data: shown, Status: problem.Status}
}

// inAddress reports whether the mistake is in the address and not in a form.
func inAddress(m v1.Mistake) bool {
	return strings.HasPrefix(m.Location, "path.") || strings.HasPrefix(m.Location, "query.")
}

// filterRefused shows a list again with what is wrong with its filter, if the API refused it with
// one of these statuses.
func filterRefused(list view, err error, statuses ...int) (answer, error) {
	problem := client.ProblemOf(err)
	if problem == nil || !slices.Contains(statuses, problem.Status) {
		return nil, err
	}
	list.Problem = problem
	return list, nil
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = capital(text)
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// capital begins with a capital.
func capital(text string) string {
	if text == "" {
		return ""
	}
	first, length := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[length:]
}
