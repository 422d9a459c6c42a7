package trainingjob

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	breezeml "github.com/musterhq/muster/api/breezeml/v1"
)

// Settings are the settings for TrainingJobs that an administrator can make.
type Settings struct {
	// Group is the API group: breezeml.DefaultGroup, unless the API was installed under another name.
	Group string
	// PendingTimeout is how long pods of a running job may be pending before the job gives up its quota. Cooldown is
	// how long it then waits before it is queued again.
	PendingTimeout, Cooldown time.Duration
}

func (s Settings) kind() schema.GroupVersionKind {
	return breezeml.VersionOf(s.Group).WithKind("TrainingJob")
}
