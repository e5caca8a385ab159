package v1

// Configuration is what one orchestrator runs with.
type Configuration struct {
	Settings []Setting `json:"settings" nullable:"false" doc:"Every setting that has a value, defaults included, in the order of config.yaml."`
}

// Setting is one key of the configuration.
type Setting struct {
	Key   string `json:"key" example:"worker.lease" doc:"The path to it."`
	Value string `json:"value" example:"30s" doc:"As a text. xxxxx and withheld stand for secrets, and for what may contain one."`
}
