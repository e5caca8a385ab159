package ui

import (
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// session is somebody who has logged in and calls the server directly, as no browser would.
type session struct {
	t      testing.TB
	origin string
	client *http.Client
}

// form is a form that a page offers, as one of its buttons sends it.
type form struct {
	page, method, action string
	fields               url.Values
	// off says that the button is disabled.
	off bool
}

// begin logs in with what the form of the login asks for.
func (s *scene) begin(t testing.TB, credentials url.Values) *session {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	in := &session{t: t, origin: s.origin, client: &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	status, _, text := in.send(http.MethodPost, "/ui/login", credentials, http.Header{"Origin": {s.origin}})
	require.Equal(t, http.StatusSeeOther, status, text)
	return in
}

// operator has logged in with the password.
func (s *scene) operator(t testing.TB) *session {
	t.Helper()
	return s.begin(t, url.Values{"user": {"admin"}, "password": {s.Password}})
}

// holder has logged in with a token.
func (s *scene) holder(t testing.TB, token string) *session {
	t.Helper()
	return s.begin(t, url.Values{"token": {token}})
}

// send sends a request, with the fields as its body unless it is a GET.
func (in *session) send(method, path string, fields url.Values, header http.Header) (status int, answered http.Header, text string) {
	in.t.Helper()
	request, err := http.NewRequestWithContext(in.t.Context(), method, in.origin+path, strings.NewReader(fields.Encode()))
	require.NoError(in.t, err)
	request.Header = header.Clone()
	if request.Header == nil {
		request.Header = make(http.Header)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := in.client.Do(request)
	require.NoError(in.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(in.t, err)
	return answer.StatusCode, answer.Header, string(body)
}

// most is how many pages of one kind a crawl reads.
const most = 5

// crawl reads the pages that can be reached by links, and returns them by path, and their forms.
func (in *session) crawl() (pages map[string]string, forms []form) {
	in.t.Helper()
	pages = make(map[string]string)
	ofKind := make(map[string]int)
	waiting := []string{"/ui/"}
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		if _, seen := pages[path]; seen || ofKind[kindOf(path)] == most {
			continue
		}
		ofKind[kindOf(path)]++
		_, _, text := in.send(http.MethodGet, path, nil, nil)
		for strings.Contains(text, `id="counting"`) {
			_, _, text = in.send(http.MethodGet, path, nil, nil)
		}
		pages[path] = text
		links, found := in.read(path, text)
		waiting, forms = append(waiting, links...), append(forms, found...)
	}
	return pages, forms
}

// read returns the links and the forms of a page.
func (in *session) read(path, text string) (links []string, forms []form) {
	in.t.Helper()
	page, err := url.Parse(in.origin + path)
	require.NoError(in.t, err)
	within := func(reference string) (string, bool) {
		u, err := page.Parse(reference)
		return u.RequestURI(), err == nil && u.Host == page.Host && strings.HasPrefix(u.Path, "/ui/") && !strings.HasPrefix(u.Path, "/ui/assets/")
	}
	root, err := html.Parse(strings.NewReader(text))
	require.NoError(in.t, err)
	named := make(map[string]form)
	for node := range root.Descendants() {
		at := attributes(node)
		switch node.Data {
		case "a":
			if to, ok := within(at["href"]); ok && at["href"] != "" {
				links = append(links, to)
			}
		case "form":
			action, _ := within(at["action"])
			if at["action"] == "" {
				action = path
			}
			named[at["id"]] = form{page: path, method: strings.ToUpper(at["method"]), action: action, fields: fieldsOf(node)}
			for _, button := range buttons(node) {
				forms = append(forms, named[at["id"]].by(button))
			}
		case "button":
			if of, ok := named[at["form"]]; ok && at["form"] != "" {
				forms = append(forms, of.by(at))
			}
		}
	}
	return links, forms
}

// by is the form as the button with the attributes sends it.
func (f form) by(button map[string]string) form {
	f.fields = maps.Clone(f.fields)
	if button["name"] != "" {
		f.fields.Set(button["name"], button["value"])
	}
	if to := button["formaction"]; to != "" {
		f.action = to
	}
	_, f.off = button["disabled"]
	return f
}

// buttons are the attributes of the form's buttons that send it.
func buttons(form *html.Node) (all []map[string]string) {
	for node := range form.Descendants() {
		if at := attributes(node); node.Data == "button" && at["type"] != "button" && at["type"] != "reset" && at["formmethod"] != "dialog" {
			all = append(all, at)
		}
	}
	return all
}

func attributes(node *html.Node) map[string]string {
	all := make(map[string]string, len(node.Attr))
	for _, a := range node.Attr {
		all[a.Key] = a.Val
	}
	return all
}

// fieldsOf is what the form would send.
func fieldsOf(form *html.Node) url.Values {
	fields := make(url.Values)
	for node := range form.Descendants() {
		at := attributes(node)
		if node.Type == html.ElementNode && at["name"] != "" && (node.Data == "input" || node.Data == "textarea" || node.Data == "select") {
			fields.Add(at["name"], at["value"])
		}
	}
	return fields
}
