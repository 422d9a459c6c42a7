package compile

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// examples are the manifests of the documents, as users have them.
const examples = "../../../../examples/latticejob/"

// everywhere serves all kinds, as a cluster of the product does.
func everywhere() Facts {
	return Facts{
		Served:  map[schema.GroupResource]bool{ExternalSecrets: true, MeshMembers: true, TracingPolicies: true},
		Cluster: map[string]string{"name": "c1"},
		Services: map[ServiceKey][]ServicePort{
			{Namespace: "data", Name: "postgres"}: {},
			{Namespace: "batch", Name: "cache"}:   {{Name: "redis", Port: 6379}, {Name: "metrics", Port: 9187}},
		},
	}
}

func with(change func(*Facts)) Facts {
	f := everywhere()
	change(&f)
	return f
}

func readJob(t testing.TB, path string) *lattice.LatticeJob {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	job := &lattice.LatticeJob{}
	if err := yaml.UnmarshalStrict(text, job); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	job.UID = "3f1c"
	return job
}

// TestObjects compares what jobs are compiled to with the files of testdata/golden.
// Run it with -update after a change that is meant, and read the difference.
func TestObjects(t *testing.T) {
	for name, test := range map[string]struct {
		manifest string
		facts    Facts
	}{
		"data-pipeline":      {examples + "data-pipeline.yaml", everywhere()},
		"data-pipeline-bare": {examples + "data-pipeline.yaml", Facts{}},
		"llm-finetune": {examples + "llm-finetune.yaml",
			with(func(f *Facts) { f.GPUs, f.NvidiaRuntime = SharedGPUs, true })},
		"llm-finetune-whole-gpus": {examples + "llm-finetune.yaml", with(func(f *Facts) { f.GPUMemoryLabel = true })},
		"everything":              {"testdata/everything.yaml", everywhere()},
		"training":                {"testdata/training.yaml", everywhere()},
		"training-jax":            {"testdata/training-jax.yaml", with(func(f *Facts) { f.GPUs = SharedGPUs })},
		"everything-on-a-cloud": {"testdata/everything.yaml", with(func(f *Facts) {
			f.SpreadBy, f.NeedMesh, f.NeedTracing = "topology.kubernetes.io/zone", true, true
			f.Served = nil
		})},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Compile(readJob(t, test.manifest), test.facts)
			if err != nil {
				t.Fatal(err)
			}
			got := asYAML(t, result)
			file := filepath.Join("testdata/golden", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// asYAML is all of a result as one text: a document each, what is told in comments.
func asYAML(t testing.TB, r *Result) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, kind := range r.Missing {
		out.WriteString("# missing: " + kind.String() + "\n")
	}
	for _, kind := range r.Skipped {
		out.WriteString("# skipped: " + kind.String() + "\n")
	}
	for _, warning := range r.Warnings {
		out.WriteString("# warning: " + warning + "\n")
	}
	for _, o := range append(r.Objects, r.VCJob) {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
}

func TestEqualJobsGiveEqualBytes(t *testing.T) {
	for _, path := range []string{"testdata/everything.yaml", "testdata/training.yaml", examples + "llm-finetune.yaml"} {
		first := ""
		for range 20 {
			// Each time the maps are made anew, and so walked in another order.
			job := readJob(t, path)
			facts := everywhere()
			facts.Services = maps.Clone(facts.Services)
			result, err := Compile(job, facts)
			if err != nil {
				t.Fatal(err)
			}
			text := string(asYAML(t, result))
			if first == "" {
				first = text
			}
			if text != first {
				t.Fatalf("%s: %s", path, cmp.Diff(first, text))
			}
		}
	}
}

// TestCompilingChangesNothing: what was read is shared with others.
func TestCompilingChangesNothing(t *testing.T) {
	for _, path := range []string{"testdata/everything.yaml", "testdata/training.yaml", "testdata/training-jax.yaml"} {
		job, facts := readJob(t, path), everywhere()
		before := job.DeepCopy()
		for _, gpus := range []GPUs{WholeGPUs, SharedGPUs} {
			facts.GPUs = gpus
			if _, err := Compile(job, facts); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(before, job); diff != "" {
			t.Error(diff)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, path := range []string{"testdata/everything.yaml", examples + "llm-finetune.yaml",
		examples + "data-pipeline.yaml"} {
		b.Run(filepath.Base(path), func(b *testing.B) {
			job, facts := readJob(b, path), everywhere()
			for b.Loop() {
				if _, err := Compile(job, facts); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(job.Spec.Tasks)), "µs/task")
		})
	}
}
