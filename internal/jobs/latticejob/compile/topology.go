package compile

import (
	"strings"

	"github.com/musterhq/muster/api/muster"
)

// domainPrefix is the prefix of the pod template annotations that request topology domains.
const domainPrefix = "kueue.x-k8s.io/podset-"

// Domains returns the annotations that request topology domains. A LatticeJob has no pod templates to
// annotate: its own annotations apply to all of its tasks.
func Domains(annotations map[string]string) map[string]string {
	var out map[string]string
	for key, value := range annotations {
		if strings.HasPrefix(key, domainPrefix) {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = value
		}
	}
	return out
}

// podAnnotations returns those annotations of a LatticeJob that its pods get: the topology domains, and whether pods
// report their progress.
func podAnnotations(annotations map[string]string) map[string]string {
	out := Domains(annotations)
	if value, there := annotations[muster.ProgressAnnotation]; there {
		if out == nil {
			out = map[string]string{}
		}
		out[muster.ProgressAnnotation] = value
	}
	return out
}
