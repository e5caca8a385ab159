package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

const (
	envPrefix = "HOLDFAST_"
	// keyDelim parts the steps of a key inside koanf. No job type contains
	// it, so that names with dots stay whole.
	keyDelim = "\x1f"
	// defaultFile is read when no file is named and it exists.
	defaultFile = "config.yaml"
)

// settings says where the configuration comes from: a later source wins over
// an earlier one.
type settings struct {
	// file is the configuration file; empty for config.yaml if there is one.
	file string
	// environ is the environment as os.Environ has it.
	environ []string
	// sets are "key.path=value".
	sets []string
}

// load reads, merges and checks the configuration.
func load(from settings) (config, error) {
	cfg := defaults()
	tree := koanf.New(keyDelim)
	if err := from.readFile(&cfg, tree); err != nil {
		return cfg, err
	}
	if err := from.readEnvironment(tree); err != nil {
		return cfg, err
	}
	if err := from.readSets(tree); err != nil {
		return cfg, err
	}
	err := tree.UnmarshalWithConf("", &cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		ErrorUnused: true, DecodeHook: decodeHooks(),
	}})
	if err != nil {
		return cfg, fmt.Errorf("configuration: %w", plainError(err))
	}
	if err := cfg.finish(from.environ); err != nil {
		return cfg, fmt.Errorf("configuration: %w", err)
	}
	return cfg, nil
}

func (from settings) readFile(cfg *config, tree *koanf.Koanf) error {
	path := from.file
	if path == "" {
		if _, err := os.Stat(defaultFile); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		path = defaultFile
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("configuration file: %w", err)
	}
	cfg.source = absolute
	content := koanf.New(keyDelim)
	if err := content.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	raw := content.Raw()
	if err := checkTree(reflect.TypeFor[config](), raw, nil); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	cfg.listsPlugins = raw["plugins"] != nil
	raw["plugins"] = numbered(raw["plugins"])
	if security, ok := raw["security"].(map[string]any); ok {
		security["tokens"] = numbered(security["tokens"])
	}
	if err := tree.Load(confmap.Provider(raw, ""), nil); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, err)
	}
	return nil
}

// numbered turns a list into a map by place, so that a later source can set a
// part of an item. The decoder turns it back.
func numbered(list any) any {
	items, ok := list.([]any)
	if !ok {
		return list
	}
	places := map[string]any{}
	for i, item := range items {
		places[strconv.Itoa(i)] = item
	}
	return places
}

func (from settings) readEnvironment(tree *koanf.Koanf) error {
	var wrong error
	provider := env.Provider(keyDelim, env.Opt{
		Prefix:      envPrefix,
		EnvironFunc: func() []string { return from.environ },
		TransformFunc: func(name, value string) (string, any) {
			if isForeign(name) {
				return "", nil
			}
			asked := key(strings.Split(strings.TrimPrefix(name, envPrefix), "__"))
			located, err := settable(asked)
			if err != nil {
				_, err = settable(asked.lower())
				wrong = errors.Join(wrong, fmt.Errorf("environment variable %s: %w", name, err))
				return "", nil
			}
			return strings.Join(located, keyDelim), value
		},
	})
	if err := tree.Load(provider, nil); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	return wrong
}

// isForeign knows the variables that begin like ours and mean other things:
// those of the tests, the cookie in a handler's environment, and those of the
// commands that speak to the API.
func isForeign(name string) bool {
	switch name {
	case envPrefix + "HANDLER", envServer, envToken, envUser, envPassword:
		return true
	}
	return strings.HasPrefix(name, envPrefix+"TEST_") || strings.HasPrefix(name, envPrefix+"JAEGER_")
}

func (from settings) readSets(tree *koanf.Koanf) error {
	flat := map[string]any{}
	for _, set := range from.sets {
		name, value, found := strings.Cut(set, "=")
		if !found {
			return fmt.Errorf("--set %s: write key.path=value", set)
		}
		located, err := settable(parseKey(name))
		if err != nil {
			return fmt.Errorf("--set %s: %w", name, err)
		}
		flat[strings.Join(located, keyDelim)] = value
	}
	if err := tree.Load(confmap.Provider(flat, keyDelim), nil); err != nil {
		return fmt.Errorf("--set: %w", err)
	}
	return nil
}
