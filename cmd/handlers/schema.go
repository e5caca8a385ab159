package main

import (
	"encoding/json"
	"strings"
	"unicode"
)

// The schemas of the mail and the request say all that a schema can of what
// their handlers refuse for good, so that it is refused at once. What a type
// says of itself in tags would not be enough.

// object and list are JSON, as schemas are written here.
type (
	object = map[string]any
	list   = []any
)

const (
	// oneLine is checkLine: no control characters but tabs.
	oneLine = `^[^\x00-\x08\x0a-\x1f\x7f]*$`
	// token is isTokenChar, which names of headers and methods are made of.
	token = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"
	// webAddress is http or https, perhaps somebody's name, a host, and whatever
	// follows.
	webAddress = `^[Hh][Tt][Tt][Pp][Ss]?://([^/?#\x00-\x20\x7f]*@)?[^/?#@:\x00-\x20\x7f][^/?#@\x00-\x20\x7f]*([/?#][^\x00-\x1f\x7f]*)?$`
	// blankOrAddress is the least that mail.ParseAddressList asks for.
	blankOrAddress = `^\s*$|@`
)

// schemaText encodes a schema. It panics at what is no JSON, which is a
// mistake in the source.
func schemaText(schema object) json.RawMessage {
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	return text
}

// orNull is for what may be left out: many clients write null for it.
func orNull(kind string) list { return list{kind, "null"} }

// headersSchema describes headers; those that are forbidden have other ways
// to be set.
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

// inAnyCase is a pattern for a name in letters of either case. Clients' engines
// know no (?i).
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

// addressesSchema describes what addresses are decoded from.
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
