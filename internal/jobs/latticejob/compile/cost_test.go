package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/jobs/jobstest"
)

// TestTimeOfCompiling: what a user lists is looked up, and not searched for again for each of its parts. Before, a job
// of 200 KB took minutes.
func TestTimeOfCompiling(t *testing.T) {
	many := func(n int, format string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, format+" ", i)
		}
		return out.String()
	}
	// Keys of as many - and _, which have the same name in a template.
	keys := func(n int) string {
		var out strings.Builder
		for i := range n {
			key := strings.NewReplacer("0", "-", "1", "_").Replace(fmt.Sprintf("%016b", i))
			fmt.Fprintf(&out, "${secret.other.k%s} ", key)
		}
		return out.String()
	}
	for what, test := range map[string]struct {
		size int
		task func(n int) string
	}{
		"secrets with the same name in a template": {1000,
			func(n int) string { return dependent("variables: {X: '"+keys(n)+"'}", secrets) }},
		"files with secrets": {1000, func(n int) string {
			return dependent("files: {"+many(n, "/f%d: {content: 'a ${secret.s.k}'},")+"}", secrets)
		}},
		"files":   {4000, func(n int) string { return container("files: {" + many(n, "/f%d: {content: x},") + "}") }},
		"volumes": {4000, func(n int) string { return container("volumes: {" + many(n, "/f%d: {},") + "}") }},
	} {
		t.Run(what, func(t *testing.T) {
			jobstest.CheckAboutLinear(t, test.size, func(n int) func() {
				job := jobOf(t, test.task(n))
				return func() {
					if _, err := Compile(job, everywhere()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
