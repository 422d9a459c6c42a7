package command

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterhq/muster/cmd/muster/show"
)

// One text with a C1 control character made -o yaml fail for a whole list, and -o json wrote it to the terminal.
func TestObjectsArePrintedWithControlCharactersEscaped(t *testing.T) {
	event := &corev1.Event{Message: "\u009b2J \x7f \u202egnp"}
	event.APIVersion, event.Kind = "v1", "Event"
	for format, want := range map[string]string{
		"json":                     `"message": "\u009b2J \u007f \u202egnp"`,
		"yaml":                     `message: "\x9B2J \x7F \u202egnp"`,
		"jsonpath={.message}":      "\u009b2J \x7f \u202egnp", // a program reads it: there is no terminal
		"go-template={{.message}}": "\u009b2J \x7f \u202egnp",
	} {
		flags := newOutputFlags()
		*flags.kube.OutputFormat = format
		var out bytes.Buffer
		printObject, err := printerFor(flags.kube, show.NewOutput(&out))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := printObject(event); err != nil {
				t.Fatalf("%s: %v", format, err)
			}
		}
		if got := bytes.Count(out.Bytes(), []byte(want)); got != 2 {
			t.Errorf("%s prints %q, want %q twice", format, out.String(), want)
		}
		if separated := bytes.Contains(out.Bytes(), []byte("\n---\n")); separated != (format == "yaml") {
			t.Errorf("%s: documents are separated: %v", format, separated)
		}
	}
}
