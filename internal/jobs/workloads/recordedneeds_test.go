package workloads

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/jobs"
)

// TestDigestOfAnotherVersionIsReplaced, whether or not the Workload holds quota. A digest of the current version is
// kept while the pod sets stay the same.
func TestDigestOfAnotherVersionIsReplaced(t *testing.T) {
	const now = "v1-aa"
	for recorded, want := range map[string]string{"v0-00": now, "forged": now, "": "", "v1-00": "v1-00"} {
		for name, w := range map[string]workloadBuilder{"waiting": waiting(), "admitted": waiting().admitted()} {
			seen := w.w
			if recorded != "" {
				metav1.SetMetaDataAnnotation(&seen.ObjectMeta, muster.AskedAnnotation, recorded)
			}
			described := seen.DeepCopy()
			metav1.SetMetaDataAnnotation(&described.ObjectMeta, muster.AskedAnnotation, now)
			got := seen
			if changed := respecified(seen, described, jobs.Progress{}); changed != nil {
				got = changed
			}
			if got := got.Annotations[muster.AskedAnnotation]; got != want {
				t.Errorf("%s Workload with the digest %q: the digest is then %q, want %q", name, recorded, got, want)
			}
		}
	}
}
