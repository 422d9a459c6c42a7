package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// unstructured returns an object of a kind without a Go type.
func (t *task) unstructured(apiVersion, kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	o.SetName(name)
	o.SetNamespace(t.job.Namespace)
	o.SetLabels(labelsOf(t.full))
	o.SetOwnerReferences([]metav1.OwnerReference{t.owner})
	return o
}

// secretName returns the name of the Secret that is made for a resource.
func (t *task) secretName(d *dependency) string { return t.full + "-" + d.name }

// secrets compiles the ExternalSecrets of the task, and adds image pull secrets to the pod.
func (t *task) secrets() error {
	for _, name := range t.names {
		d := t.resources[name]
		if d.Type != lattice.SecretResource {
			continue
		}
		secretType := cmp.Or(d.secret.SecretType, corev1.SecretTypeOpaque)
		if d.pulls {
			secretType = cmp.Or(d.secret.SecretType, corev1.SecretTypeDockerConfigJson)
		}
		spec := storeSpec(d.secret.Provider, d.secret.RefreshInterval, t.secretName(d),
			map[string]any{"type": string(secretType)})
		if len(d.secret.Keys) == 0 {
			spec["dataFrom"] = []any{map[string]any{"extract": map[string]any{"key": d.ID}}}
		} else {
			var data []any
			for _, key := range d.secret.Keys {
				data = append(data, remote(key, d.ID, key))
			}
			spec["data"] = data
		}
		t.externalSecret(t.secretName(d), spec)
	}
	for _, name := range t.spec.ImagePullSecrets {
		secret := corev1.LocalObjectReference{Name: t.secretName(t.resources[name])}
		if !slices.Contains(t.pod.ImagePullSecrets, secret) {
			t.pod.ImagePullSecrets = append(t.pod.ImagePullSecrets, secret)
		}
	}
	return nil
}

func (t *task) externalSecret(name string, spec map[string]any) {
	t.addOf(ExternalSecrets, false, t.unstructured("external-secrets.io/v1", externalSecretKind, name, spec))
}

// storeSpec returns what all ExternalSecrets have in common: the store, and the Secret to make.
func storeSpec(provider, refresh, target string, template map[string]any) map[string]any {
	spec := map[string]any{
		"secretStoreRef": map[string]any{"kind": "ClusterSecretStore", "name": provider},
		"target":         map[string]any{"name": target, "creationPolicy": "Owner", "template": template},
	}
	if refresh != "" {
		spec["refreshInterval"] = refresh
	}
	return spec
}

func remote(secretKey, id, property string) map[string]any {
	return map[string]any{"secretKey": secretKey, "remoteRef": map[string]any{"key": id, "property": property}}
}

// rendering is a Secret whose values are texts that contain secrets of a single store.
type rendering struct {
	provider string
	refresh  string
	texts    map[string]any
	// bytes is how many bytes the texts have together, without the values of secrets.
	bytes int
	data  []any
	// aliases are the names of values in templates, by resource and key; taken are the names in use, and last maps a name
	// that several values would have to the last number given.
	aliases map[[2]string]string
	taken   map[string]bool
	last    map[string]int
}

func newRendering(provider string) *rendering {
	return &rendering{provider: provider, texts: map[string]any{}, aliases: map[[2]string]string{},
		taken: map[string]bool{}, last: map[string]int{}}
}

// storeOf returns the store of all secrets in the text; it fails if there are several.
func storeOf(x *text) (string, error) {
	provider := ""
	for _, p := range x.pieces {
		if p.reference == nil {
			continue
		}
		if provider != "" && provider != p.secret.secret.Provider {
			return "", fmt.Errorf("mixes secrets of the stores '%s' and '%s': all secrets in one text must be of one", provider,
				p.secret.secret.Provider)
		}
		provider = p.secret.secret.Provider
	}
	if provider == "" {
		return "", errors.New("has no secret")
	}
	return provider, nil
}

// put sets the key to the text.
func (r *rendering) put(key string, x *text) {
	var b strings.Builder
	for i, p := range x.pieces {
		if p.reference == nil {
			escapeBraces(&b, p.literal, i < len(x.pieces)-1)
			continue
		}
		alias := r.alias(p.reference)
		if alias[0] >= '0' && alias[0] <= '9' {
			fmt.Fprintf(&b, "{{ index . %q }}", alias)
		} else {
			fmt.Fprintf(&b, "{{ .%s }}", alias)
		}
	}
	r.texts[key] = b.String()
	r.bytes += b.Len()
}

// escapeBraces writes a literal so that a Go template renders it unchanged. before says that an action follows.
func escapeBraces(b *strings.Builder, literal string, before bool) {
	for literal != "" {
		start := strings.IndexByte(literal, '{')
		if start < 0 {
			b.WriteString(literal)
			return
		}
		b.WriteString(literal[:start])
		literal = literal[start:]
		run := len(literal) - len(strings.TrimLeft(literal, "{"))
		if run > 1 || run == len(literal) && before {
			fmt.Fprintf(b, "{{ %q }}", literal[:run])
		} else {
			b.WriteString(literal[:run])
		}
		literal = literal[run:]
	}
}

var aliasOf = strings.NewReplacer("-", "_", ".", "_")

// alias returns RESOURCE_KEY with underscores, and a number if another value has that name.
func (r *rendering) alias(ref *reference) string {
	id := [2]string{ref.secret.name, ref.key}
	if alias, ok := r.aliases[id]; ok {
		return alias
	}
	base := aliasOf.Replace(ref.secret.name + "_" + ref.key)
	alias, n := base, max(r.last[base], 1)
	for r.taken[alias] {
		n++
		alias = fmt.Sprintf("%s_%d", base, n)
	}
	r.last[base] = n
	r.aliases[id], r.taken[alias] = alias, true
	r.data = append(r.data, remote(alias, ref.secret.ID, ref.key))
	r.refresh = sooner(r.refresh, ref.secret.secret.RefreshInterval)
	return alias
}

// sooner returns the shorter of two intervals; an empty one is ignored.
func sooner(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	first, err := time.ParseDuration(a)
	second, err2 := time.ParseDuration(b)
	if err == nil && err2 == nil && second < first {
		return b
	}
	return a
}

// render compiles the ExternalSecret for the Secret with the name.
func (t *task) render(name string, r *rendering) {
	spec := storeSpec(r.provider, r.refresh, name,
		map[string]any{"engineVersion": "v2", "type": string(corev1.SecretTypeOpaque), "data": r.texts})
	spec["data"] = r.data
	t.externalSecret(name, spec)
}
