package compile

import (
	"strings"
	"testing"
	"text/template"
)

func TestPlaceholdersAndEscapes(t *testing.T) {
	task := &task{compiler: &compiler{facts: &Facts{Cluster: map[string]string{"name": "c"}}}, full: "j-t"}
	for _, test := range []struct {
		mode      expansion
		raw, want string
	}{
		{expand, "", ""},
		{expand, "plain $HOME $$ $", "plain $HOME $$ $"},
		{expand, "${metadata.name}-${cluster.name}", "j-t-c"},
		{expand, "${ metadata.name }", "j-t"},
		{expand, "$${metadata.name}", "${metadata.name}"},
		{expand, "$$${metadata.name}", "$${metadata.name}"},
		{expand, "$${unclosed", "${unclosed"},
		{expand, "$${secret.a.b}", "${secret.a.b}"},
		{reverseExpand, "${HOME} $${metadata.name} ${x:-y", "${HOME} j-t ${x:-y"},
		{verbatim, "${nope} $${x} ${", "${nope} $${x} ${"},
	} {
		got, err := task.expandText("x", test.raw, test.mode)
		if err != nil || got.plain != test.want || got.secret() {
			t.Errorf("%q: %q, %v; want %q", test.raw, got.plain, err, test.want)
		}
	}
}

// FuzzTemplate: escaped text comes out as it is, whatever it holds; text around
// secrets is never lost or run by the template that puts them in.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "${", "$${", "{{", "{", "a{{{b}}}", "${secret.s.k}", "$${a}${b}", "{{- /* */ -}}",
		"{{ .s_k }}", "\x00{{`"} {
		f.Add(seed, seed)
	}
	task := &task{compiler: &compiler{facts: &Facts{}}, full: "j-t", names: []string{"s"}}
	task.resources = map[string]*dependency{"s": secretDependency("s")}
	f.Fuzz(func(t *testing.T, before, after string) {
		task.values, task.texts = 0, 0
		escaped := strings.ReplaceAll(before, "${", "$${")
		got, err := task.expandText("x", escaped, expand)
		if err != nil || got.plain != before {
			t.Fatalf("%q: %q, %v", escaped, got.plain, err)
		}
		if strings.HasSuffix(escaped, "$") { // it would escape what follows
			before, escaped = before+".", escaped+"."
		}
		after = strings.ReplaceAll(after, "${", "$${")
		mixed, err := task.expandText("x", escaped+"${secret.s.k}"+after, expand)
		if err != nil {
			t.Fatal(err)
		}
		if mixed.single() != nil {
			if before != "" || after != "" {
				t.Fatalf("%q and %q are lost", before, after)
			}
			return
		}
		r := newRendering("p")
		r.put("x", &mixed)
		parsed, err := template.New("").Parse(r.texts["x"].(string))
		if err != nil {
			t.Fatalf("%q: %v", r.texts["x"], err)
		}
		var out strings.Builder
		if err := parsed.Execute(&out, map[string]string{"s_k": "{{VALUE}}"}); err != nil {
			t.Fatal(err)
		}
		if want := before + "{{VALUE}}" + strings.ReplaceAll(after, "$${", "${"); out.String() != want {
			t.Fatalf("got %q, want %q", out.String(), want)
		}
	})
}

func secretDependency(name string) *dependency {
	d := &dependency{name: name}
	d.ResourceSpec = newSecretSpec()
	d.secret.Provider = "p"
	return d
}
