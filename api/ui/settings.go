package ui

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// settingsForm is what the page shows, and what it has sent.
type settingsForm struct {
	preferences
	Themes    []choice
	Intervals []choice
	// Config has the settings of the orchestrator. NoConfig says why they are not shown.
	Config   []v1.Setting
	NoConfig string
}

// choice is one of a list.
type choice struct {
	Value, Label string
	Chosen       bool
}

func (s *site) settings(r chi.Router) {
	r.Get("/settings", s.serve(showSettings))
	r.Post("/settings", s.serve(saveSettings))
}

func showSettings(v *visit) (answer, error) { return v.settingsPage(v.prefs, nil), nil }

func (v *visit) settingsPage(p preferences, refused *v1.Problem) view {
	form := settingsForm{preferences: p, Themes: []choice{{"", "As the system", false}, {"light", "Light", false}, {"dark", "Dark", false}}}
	for i := range form.Themes {
		form.Themes[i].Chosen = form.Themes[i].Value == p.Theme
	}
	for _, every := range intervals {
		form.Intervals = append(form.Intervals, choice{strconv.Itoa(every), strconv.Itoa(every) + " s", every == p.Every})
	}
	if form.NoConfig = v.deniedAll(guard.Observe); form.NoConfig == "" {
		var config v1.Configuration
		if err := v.get(client.Path("debug", "config"), nil, &config); err != nil {
			form.NoConfig = "It could not be read."
			if v.Cells != nil {
				form.NoConfig = "Each orchestrator of each cell has its own."
			}
		}
		form.Config = config.Settings
	}
	return view{Template: "settings", Title: "Settings", Data: form, Problem: refused}
}

func saveSettings(v *visit) (answer, error) {
	every, err := strconv.Atoi(v.form("every"))
	p := preferences{Theme: v.form("theme"), Zone: v.form("zone"), Every: every, NoKeys: v.form("keys") == ""}
	var mistakes []v1.Mistake
	if !slices.Contains(themes, p.Theme) {
		mistakes = append(mistakes, v1.Mistake{Location: "#/theme", Message: "must be one of those offered"})
	}
	if _, wrong := time.LoadLocation(p.Zone); wrong != nil || p.Zone == "Local" {
		mistakes = append(mistakes, v1.Mistake{Location: "#/zone", Message: "must be the name of a time zone, such as UTC or Europe/Berlin, or empty"})
	}
	if err != nil || !slices.Contains(intervals, every) {
		mistakes = append(mistakes, v1.Mistake{Location: "#/every", Message: "must be one of those offered"})
	}
	if len(mistakes) > 0 {
		return v.settingsPage(p, v1.NewProblem(http.StatusUnprocessableEntity, "The settings were not saved.", mistakes...)), nil
	}
	p.save(v.writer, v.request)
	return back{To: Root + "/settings", Notice: "Settings saved in this browser."}, nil
}
