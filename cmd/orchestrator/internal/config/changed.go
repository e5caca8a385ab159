package config

import "reflect"

// Changed returns the keys that differ and that a reload does not apply.
func Changed(was, is Config) []string {
	was.Plugins, is.Plugins = nil, nil
	was.Limits, is.Limits = JobLimits{}, JobLimits{}
	was.Schedules, is.Schedules = nil, nil
	was.Retention, is.Retention = Retention{}, Retention{}
	return changedFields(reflect.ValueOf(was), reflect.ValueOf(is), "")
}

func changedFields(was, is reflect.Value, prefix string) []string {
	var changed []string
	for i := range was.NumField() {
		field := was.Type().Field(i)
		name, before, after := field.Tag.Get("koanf"), was.Field(i), is.Field(i)
		switch {
		case name == "":
		case field.Type.Kind() == reflect.Struct && hasKeys(field.Type):
			changed = append(changed, changedFields(before, after, prefix+name+".")...)
		case !reflect.DeepEqual(before.Interface(), after.Interface()):
			changed = append(changed, prefix+name)
		}
	}
	return changed
}

// hasKeys reports whether a struct is a section, and not a value with several fields.
func hasKeys(section reflect.Type) bool {
	return section.NumField() > 0 && section.Field(0).Tag.Get("koanf") != ""
}
