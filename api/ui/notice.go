package ui

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"unicode/utf8"
)

const (
	noticeCookie = "hf_notice"
	// maxNotice bounds the text of a notice, so that its cookie fits.
	maxNotice = 500
)

// notice says on the next page what was done.
type notice struct {
	Text string
	Undo *undo `json:",omitempty"`
}

// undo is the form that takes an act back.
type undo struct {
	// To is the path of the act.
	To     string
	Fields map[string]string `json:",omitempty"`
}

// setNotice keeps the notice in a cookie until the next page.
func setNotice(w http.ResponseWriter, r *http.Request, n notice) {
	if utf8.RuneCountInString(n.Text) > maxNotice {
		n.Text = string([]rune(n.Text)[:maxNotice]) + "…"
	}
	text, err := json.Marshal(n)
	if err != nil {
		return
	}
	setCookie(w, r, noticeCookie, base64.RawURLEncoding.EncodeToString(text), 60)
}

// takeNotice returns the notice that the last act left, once; nil for none.
func takeNotice(w http.ResponseWriter, r *http.Request) *notice {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil {
		return nil
	}
	setCookie(w, r, noticeCookie, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return nil
	}
	n := &notice{}
	if json.Unmarshal(text, n) != nil || n.Text == "" {
		return nil
	}
	if n.Undo != nil && !isOwn(n.Undo.To) {
		n.Undo = nil
	}
	return n
}

// setCookie keeps a value for so many seconds, in the pages of the UI only. Below 0 it forgets it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name: name, Value: value, Path: Root, MaxAge: seconds,
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}
