package compile

import (
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

func newSecretSpec() *lattice.ResourceSpec {
	return &lattice.ResourceSpec{Type: lattice.SecretResource, ID: "x"}
}

// FuzzFilePaths: whatever the paths, each file is mounted where it says, by a key of its
// own, and nowhere outside; or the job is refused.
func FuzzFilePaths(f *testing.F) {
	for _, seed := range [][2]string{{"/a", "/b"}, {"/a/b", "/a-b"}, {"/a@b", "/a_b"}, {"/../etc/passwd", "/."},
		{"/etc/..", "//etc"}, {"/" + strings.Repeat("x", 300), "/ü"}, {"/a\x00", "/a\nb"}, {"/..data", "/..2026"}} {
		f.Add(seed[0], seed[1], false)
		f.Add(seed[0], seed[1], true)
	}
	f.Fuzz(func(t *testing.T, first, second string, secret bool) {
		content := "x"
		if secret {
			content = "${secret.s.k}x"
		}
		file := lattice.FileMount{Content: ptr.To(content)}
		job := jobOf(t, "workload: {containers: {main: {image: i}}, resources: {s: {type: secret, id: x, params: {provider: p}}}}")
		task := job.Spec.Tasks["t"]
		main := task.Workload.Containers["main"]
		main.Files = map[string]lattice.FileMount{first: file, second: file}
		task.Workload.Containers["main"] = main
		result, err := Compile(job, everywhere())
		if err != nil {
			if !strings.Contains(err.Error(), "file compilation error") {
				t.Fatal(err)
			}
			return
		}
		checkFiles(t, &result.VCJob.Spec.Tasks[0].Template.Spec, main.Files)
		names := map[string]bool{}
		for _, o := range result.Objects {
			id := o.GetObjectKind().GroupVersionKind().Kind + "/" + o.GetName()
			if names[id] || len(validation.IsDNS1123Subdomain(o.GetName())) > 0 {
				t.Fatalf("%s is there twice, or is no name", id)
			}
			names[id] = true
		}
	})
}

func checkFiles(t *testing.T, pod *corev1.PodSpec, files map[string]lattice.FileMount) {
	t.Helper()
	keys := map[string]bool{}
	mounts := pod.Containers[0].VolumeMounts
	if len(mounts) != len(files) {
		t.Fatalf("%d mounts for %d files", len(mounts), len(files))
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		if volumes[v.Name] || len(validation.IsDNS1123Label(v.Name)) > 0 {
			t.Fatalf("volume %q", v.Name)
		}
		volumes[v.Name] = true
	}
	for _, m := range mounts {
		if _, ok := files[m.MountPath]; !ok || path.Clean(m.MountPath) != m.MountPath || !path.IsAbs(m.MountPath) {
			t.Fatalf("mounted at %q", m.MountPath)
		}
		key := m.Name + "/" + m.SubPath
		if keys[key] || strings.Contains(m.SubPath, "/") || m.SubPath == ".." ||
			len(validation.IsConfigMapKey(m.SubPath)) > 0 || !volumes[m.Name] {
			t.Fatalf("mounted from %q", key)
		}
		keys[key] = true
	}
}

// TestSecretsAreInNoConfigMap: a planted text that comes with a secret is in no object
// that people without rights to secrets may read.
func TestSecretsAreInNoConfigMap(t *testing.T) {
	const planted = "hunter2"
	task := `
workload:
  containers:
    main:
      image: i
      variables: {DSN: "postgres://hunter2:${secret.s.k}@db"}
      files:
        /etc/dsn: {content: "hunter2 ${secret.s.k}"}
        /etc/key: {binaryContent: aHVudGVyMg==}
  resources: {s: {type: secret, id: x, params: {provider: p}}}
`
	result, err := Compile(jobOf(t, task), everywhere())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, o := range append(result.Objects, result.VCJob) {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if text := string(raw); strings.Contains(text, planted) || strings.Contains(text, "aHVudGVyMg==") {
			found[kind] = true
		}
	}
	for kind := range found {
		if kind != "Secret" && kind != "ExternalSecret" {
			t.Errorf("%s has it", kind)
		}
	}
	if !found["Secret"] || !found["ExternalSecret"] {
		t.Errorf("the planted text is lost: %v", found)
	}
}
