package api

import (
	"net/url"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// withhold takes from an answer what the caller may not see without the scope payloads:
// the members of api/v1 with the tag payloads:"withhold", and of the URLs with
// payloads:"origin" all but that. It sets those with payloads:"mark".
func withhold(ctx huma.Context, _ string, answer any) (any, error) {
	if answer == nil || guard.SeesPayloads(ctx.Context()) {
		return answer, nil
	}
	return withoutPayloads(reflect.ValueOf(answer)).Interface(), nil
}

// withoutPayloads returns a copy, because requests may share the original.
func withoutPayloads(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		inner := withoutPayloads(v.Elem())
		if v.Kind() == reflect.Interface {
			return inner
		}
		pointer := reflect.New(v.Type().Elem())
		pointer.Elem().Set(inner)
		return pointer
	case reflect.Slice:
		if v.IsNil() || isPlain(v.Type().Elem()) {
			return v
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(withoutPayloads(v.Index(i)))
		}
		return list
	case reflect.Map:
		if v.IsNil() || isPlain(v.Type().Elem()) {
			return v
		}
		members := reflect.MakeMapWithSize(v.Type(), v.Len())
		for name, value := range v.Seq2() {
			members.SetMapIndex(name, withoutPayloads(value))
		}
		return members
	case reflect.Struct:
		return structWithoutPayloads(v)
	default:
		return v
	}
}

func structWithoutPayloads(v reflect.Value) reflect.Value {
	shown := reflect.New(v.Type()).Elem()
	shown.Set(v)
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch field.Tag.Get("payloads") {
		case "withhold":
			shown.Field(i).SetZero()
		case "origin":
			shown.Field(i).SetString(originOf(v.Field(i).String()))
		case "mark":
			shown.Field(i).SetBool(true)
		default:
			if field.IsExported() {
				shown.Field(i).Set(withoutPayloads(v.Field(i)))
			}
		}
	}
	return shown
}

// originOf is the part of a URL that is no secret of whoever gave it.
func originOf(text string) string {
	target, err := url.Parse(text)
	if err != nil || target.Host == "" {
		return ""
	}
	return target.Scheme + "://" + target.Host
}

// isPlain reports whether values of the type have no members.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Struct:
		return false
	default:
		return true
	}
}
