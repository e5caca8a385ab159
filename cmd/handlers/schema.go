package main

import (
	"encoding/json"
	"strings"
	"unicode"
)

// These schemas refuse at submission, as far as a schema can, what the handlers would
// refuse for good. Tags could not say all of it.

// object and list are JSON.
type (
	object = map[string]any
	list   = []any
)

const (
	// oneLine is the same as checkLine: no control characters except tabs.
	oneLine = `^[^\x00-\x08\x0a-\x1f\x7f]*$`
	// token is RFC 9110's, for names of headers and methods.
	token = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
	// webAddress is http or https, an optional user, a host, and the rest.
	webAddress = `^[Hh][Tt][Tt][Pp][Ss]?://([^/?#\x00-\x20\x7f]*@)?[^/?#@:\x00-\x20\x7f][^/?#@\x00-\x20\x7f]*([/?#][^\x00-\x1f\x7f]*)?$`
	// blankOrAddress is the minimum that mail.ParseAddressList accepts.
	blankOrAddress = `^\s*$|@`
)

// schemaText encodes a schema. It panics if that fails, which is a bug here.
func schemaText(schema object) json.RawMessage {
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	return text
}

// orNull is for optional members, for which many clients send null.
func orNull(kind string) list { return list{kind, "null"} }

// headersSchema describes headers without the forbidden ones.
func headersSchema(forbidden ...string) object {
	names := object{"pattern": token}
	if len(forbidden) > 0 {
		for i, name := range forbidden {
			forbidden[i] = inAnyCase(name)
		}
		names["not"] = object{"pattern": "^(" + strings.Join(forbidden, "|") + ")$"}
	}
	return object{
		"type": orNull("object"), "propertyNames": names,
		"additionalProperties": object{"type": "string", "pattern": oneLine},
	}
}

// inAnyCase is a pattern for a name regardless of case. The engines of clients may not
// have (?i).
func inAnyCase(name string) string {
	var pattern strings.Builder
	for _, r := range name {
		if unicode.IsLetter(r) {
			pattern.WriteString("[" + string(unicode.ToUpper(r)) + string(unicode.ToLower(r)) + "]")
		} else {
			pattern.WriteRune(r)
		}
	}
	return pattern.String()
}

// addressesSchema describes what written is decoded from.
func addressesSchema() object {
	return object{"anyOf": list{
		object{"type": "string", "pattern": blankOrAddress},
		object{"type": "array", "items": object{"type": "string", "pattern": blankOrAddress}},
		object{"type": "null"},
	}}
}

func emailSchema() json.RawMessage {
	somebody := object{"type": "string", "pattern": "@"}
	written := func(member string) object {
		return object{"required": list{member}, "properties": object{member: object{"type": "string", "minLength": 1}}}
	}
	return schemaText(object{
		"type": "object", "required": list{"to", "subject"},
		"properties": object{
			"to": object{"anyOf": list{
				somebody,
				object{"type": "array", "items": object{"type": "string", "pattern": blankOrAddress}, "contains": somebody},
			}},
			"cc": addressesSchema(), "bcc": addressesSchema(), "replyTo": addressesSchema(),
			"subject": object{"type": "string", "pattern": oneLine},
			"text":    object{"type": orNull("string")}, "html": object{"type": orNull("string")},
			"headers": headersSchema(append([]string(nil), ours...)...),
		},
		"anyOf": list{written("text"), written("html")},
	})
}

func requestSchema() json.RawMessage {
	status := object{"type": "integer", "minimum": 100, "maximum": 999}
	return schemaText(object{
		"type": "object", "required": list{"method", "url"},
		"properties": object{
			"method":  object{"type": "string", "pattern": token},
			"url":     object{"type": "string", "pattern": webAddress},
			"headers": headersSchema(),
			"body":    true,
			"expectStatus": object{"anyOf": list{
				status, object{"type": "array", "items": status}, object{"type": "null"},
			}},
			"timeoutSeconds": object{"type": orNull("number"), "exclusiveMinimum": 0, "maximum": maxRequestSeconds},
		},
	})
}
