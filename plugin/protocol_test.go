package plugin

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

var (
	section = regexp.MustCompile("(?m)^### `([A-Za-z.]+)`$")
	row     = regexp.MustCompile("(?m)^\\| `([A-Za-z_]+)` \\| (\\d+) \\| ([^|]*?) ?\\|")
)

// Handlers in other languages are written from the page.
func TestTheProtocolPageHasEveryMessageAndField(t *testing.T) {
	content, err := os.ReadFile("../docs/reference/protocol.md")
	require.NoError(t, err)
	page := string(content)
	documented := make(map[string]string)
	headings := section.FindAllStringSubmatchIndex(page, -1)
	for i, at := range headings {
		end := len(page)
		if i+1 < len(headings) {
			end = headings[i+1][0]
		}
		text, _, _ := strings.Cut(page[at[1]:end], "\n## ")
		documented[page[at[2]:at[3]]] = text
	}
	known := 0
	file := handlerv1.File_handler_proto
	for i := range file.Messages().Len() {
		message := file.Messages().Get(i)
		known += 1 + message.Enums().Len()
		var fields [][]string
		for i := range message.Fields().Len() {
			field := message.Fields().Get(i)
			fields = append(fields, []string{string(field.Name()), strconv.Itoa(int(field.Number())), typeOf(field)})
		}
		require.Equal(t, fields, rowsOf(documented[string(message.Name())], 3), message.Name())
		for i := range message.Enums().Len() {
			enum := message.Enums().Get(i)
			var values [][]string
			for i := range enum.Values().Len() {
				value := enum.Values().Get(i)
				values = append(values, []string{string(value.Name()), strconv.Itoa(int(value.Number()))})
			}
			name := string(message.Name()) + "." + string(enum.Name())
			require.Equal(t, values, rowsOf(documented[name], 2), name)
		}
	}
	require.Len(t, documented, known, "the page describes what is not there")
	for _, fact := range []string{
		protocol.CookieKey, protocol.CookieValue, "`" + protocol.CodeTimeout + "`", "`" + protocol.CodeLeaseLost + "`",
		"`" + codeBadPayload + "`", "`" + codeUnknownType + "`", "`" + codePanic + "`", string(file.Package()),
		strconv.Itoa(protocol.MaxMessageBytes>>20) + " MiB", strconv.Itoa(protocol.MaxSchemaBytes>>10) + " KiB",
	} {
		require.Contains(t, page, fact)
	}
}

// rowsOf returns the first columns of the table of fields or values.
func rowsOf(text string, columns int) (rows [][]string) {
	for _, found := range row.FindAllStringSubmatch(text, -1) {
		rows = append(rows, found[1:1+columns])
	}
	return rows
}

// typeOf is a field's type as the .proto file has it.
func typeOf(field protoreflect.FieldDescriptor) string {
	name := field.Kind().String()
	switch {
	case field.Message() != nil:
		name = string(field.Message().Name())
	case field.Enum() != nil:
		name = strings.TrimPrefix(string(field.Enum().FullName()), string(field.ParentFile().Package())+".")
	}
	switch {
	case field.IsList():
		return "repeated " + name
	case field.HasOptionalKeyword():
		return "optional " + name
	}
	return name
}
