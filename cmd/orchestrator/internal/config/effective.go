package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// withheld stands for a value that may be, or contain, a secret.
const withheld = "withheld"

// Effective lists every setting as it is in effect, for operators. It shows neither secrets nor
// what may contain one: the tag show:"no" withholds a value.
func (c Config) Effective() []v1.Setting {
	return settingsOf(reflect.ValueOf(c), nil)
}

func settingsOf(v reflect.Value, at key) []v1.Setting {
	set := func(value string) []v1.Setting { return []v1.Setting{{Key: at.String(), Value: value}} }
	switch {
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return settingsOf(v.Elem(), at)
	case v.Kind() == reflect.Struct && hasKeys(v.Type()):
		return settingsIn(v, at)
	case v.Type() == reflect.TypeFor[time.Duration]():
		return set(v.Interface().(time.Duration).String())
	case v.Kind() == reflect.Map:
		var all []v1.Setting
		named := map[string]reflect.Value{}
		for name, value := range v.Seq2() {
			named[name.String()] = value
		}
		for _, name := range slices.Sorted(maps.Keys(named)) {
			all = append(all, settingsOf(named[name], at.below(name))...)
		}
		return all
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var all []v1.Setting
		for i := range v.Len() {
			all = append(all, settingsOf(v.Index(i), at.below(fmt.Sprint(i)))...)
		}
		return all
	case v.Kind() == reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, fmt.Sprint(v.Index(i).Interface()))
		}
		return set("[" + strings.Join(items, ", ") + "]")
	}
	if text, ok := v.Interface().(encoding.TextMarshaler); ok {
		shown, err := text.MarshalText()
		if err != nil {
			return set(withheld)
		}
		return set(string(shown))
	}
	return set(fmt.Sprint(v.Interface()))
}

func settingsIn(v reflect.Value, at key) []v1.Setting {
	var all []v1.Setting
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name := field.Tag.Get("koanf")
		switch {
		case name == "":
		case field.Tag.Get("show") == "no":
			if value := v.Field(i); !value.IsZero() && !(value.Kind() == reflect.Pointer && value.Elem().IsZero()) {
				all = append(all, v1.Setting{Key: at.below(name).String(), Value: withheld})
			}
		default:
			all = append(all, settingsOf(v.Field(i), at.below(name))...)
		}
	}
	return all
}
