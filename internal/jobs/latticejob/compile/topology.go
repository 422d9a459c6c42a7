package compile

import "strings"

// domainPrefix begins the annotations of pod templates that say in which domains of a topology pods
// are to be.
const domainPrefix = "kueue.x-k8s.io/podset-"

// Domains are those of the annotations that say in which domains pods are to be. A LatticeJob has no
// templates to say it on: what it says itself holds for all of its tasks.
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
