package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// translate rewrites, in place, what Kueue's configuration spells otherwise. It gives the names of fields as the user
// spelled them, by ours, for what is said of them later.
func translate(options map[string]any) (given map[string]string, mistakes field.ErrorList) {
	given = map[string]string{}
	translateBlockAdmission(options)
	translateFairSharing(options)
	if workloads := section(section(options, "objectRetentionPolicies"), "workloads"); workloads != nil {
		const ours, theirs = "afterDeactivatedByMuster", "afterDeactivatedByKueue"
		at := field.NewPath("objectRetentionPolicies", "workloads")
		value, ok := workloads[theirs]
		switch {
		case ok && workloads[ours] != nil:
			mistakes = append(mistakes, field.Forbidden(at.Child(theirs), "is another name of "+ours+": keep one of the two"))
		case ok:
			workloads[ours] = value
			given[at.Child(ours).String()] = at.Child(theirs).String()
		}
		delete(workloads, theirs)
	}
	return given, mistakes
}

// translateBlockAdmission takes the booleans: true blocks all.
func translateBlockAdmission(options map[string]any) {
	ready := section(options, "waitForPodsReady")
	switch ready["blockAdmission"] {
	case true:
		ready["blockAdmission"] = string(v1alpha1.BlockAll)
	case false:
		ready["blockAdmission"] = string(v1alpha1.BlockNone)
	}
}

// translateFairSharing takes the switch of what is on here where it is present.
func translateFairSharing(options map[string]any) {
	sharing := section(options, "fairSharing")
	switch sharing["enable"] {
	case true:
		delete(sharing, "enable")
	case false:
		delete(options, "fairSharing")
	}
}

// section gives the options below a name, nil if there are none.
func section(options map[string]any, name string) map[string]any {
	below, _ := options[name].(map[string]any)
	return below
}
