package config

// UI is the web UI.
type UI struct {
	Enabled bool `koanf:"enabled"`
}
