package config

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// The operator says in this ConfigMap by what configuration it decides, so that others can tell what it would decide. It
// reads it never: who changes it changes nothing.
const (
	PublishedNamespace = metav1.NamespacePublic
	PublishedName      = "muster-config"

	publishedKey = "config.yaml"
)

// Published is the ConfigMap for a configuration, which is a complete one.
func Published(c *v1alpha1.Configuration) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("writing the configuration down: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: PublishedNamespace, Name: PublishedName, Annotations: map[string]string{
			"muster.dev/about": "what the operator decides by; it is written at its start, and changes of it have no effect",
		}},
		Data: map[string]string{publishedKey: string(text)},
	}, nil
}

// FromPublished is the inverse. It fails where another version of the operator knows options that this one does not.
func FromPublished(m *corev1.ConfigMap) (*v1alpha1.Configuration, error) {
	c, problems := parse([]byte(m.Data[publishedKey]))
	if len(problems) > 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s, which the operator wrote: %s", m.Namespace, m.Name, strings.Join(problems, "; "))
	}
	return c, nil
}
