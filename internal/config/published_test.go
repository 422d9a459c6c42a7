package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAPublishedConfigurationReadsBack(t *testing.T) {
	text := "apiVersion: config.muster.dev/v1alpha1\nkind: Configuration\n"
	for name, more := range map[string]string{
		"the default":           "",
		"another configuration": "fairSharing: {}\nwaitForPodsReady: {timeout: 5m, blockAdmission: Queue}\nresources: {excludeResourcePrefixes: [example.com]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			c, problems := parse([]byte(text + more))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			published, err := Published(c)
			if err != nil {
				t.Fatal(err)
			}
			again, err := FromPublished(published)
			if diff := cmp.Diff(c, again); err != nil || diff != "" {
				t.Errorf("%v (-published +read):\n%s", err, diff)
			}
		})
	}
}

func TestUnknownPublishedOptionsAreAnError(t *testing.T) {
	_, err :=
		FromPublished(
			&corev1.ConfigMap{Data: map[string]string{
				publishedKey: "apiVersion: config.muster.dev/v1alpha1\nkind: Configuration\nwarpDrive: true\n"}})
	if err == nil || !strings.Contains(err.Error(), "warpDrive") {
		t.Errorf("got error %v, want one that names warpDrive", err)
	}
}
