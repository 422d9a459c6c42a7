package config

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// The operator publishes its configuration in this ConfigMap, so that clients can predict its decisions. It never
// reads the ConfigMap: editing it has no effect.
const (
	PublishedNamespace = metav1.NamespacePublic
	PublishedName      = "muster-config"

	publishedKey = "config.yaml"
)

// Published returns the ConfigMap for a configuration, which must be complete.
func Published(c *v1alpha1.Configuration) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encoding the configuration: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: PublishedNamespace, Name: PublishedName, Annotations: map[string]string{
			"muster.dev/about": "what the operator decides by; it is written at its start, and changes of it have no effect",
		}},
		Data: map[string]string{publishedKey: string(text)},
	}, nil
}

// FromPublished is the inverse of Published. It fails if the ConfigMap is from a version of the operator with other
// options.
func FromPublished(m *corev1.ConfigMap) (*v1alpha1.Configuration, error) {
	c, problems := parse([]byte(m.Data[publishedKey]))
	if len(problems) > 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s, which the operator wrote: %s", m.Namespace, m.Name,
			strings.Join(problems, "; "))
	}
	return c, nil
}
