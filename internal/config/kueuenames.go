package config

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/musterhq/muster/api/config/v1alpha1"
)

// translate renames, in place, options that Kueue's configuration spells differently. given maps our field names to
// the user's spelling, for use in messages.
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
			mistakes = append(mistakes, field.Forbidden(at.Child(theirs), "is another name for "+ours+": keep one of the two"))
		case ok:
			workloads[ours] = value
			given[at.Child(ours).String()] = at.Child(theirs).String()
		}
		delete(workloads, theirs)
	}
	return given, mistakes
}

// translateBlockAdmission converts Kueue's booleans: true blocks all.
func translateBlockAdmission(options map[string]any) {
	ready := section(options, "waitForPodsReady")
	switch ready["blockAdmission"] {
	case true:
		ready["blockAdmission"] = string(v1alpha1.BlockAll)
	case false:
		ready["blockAdmission"] = string(v1alpha1.BlockNone)
	}
}

// translateFairSharing converts Kueue's switch: here the presence of the section enables Fair Sharing.
func translateFairSharing(options map[string]any) {
	sharing := section(options, "fairSharing")
	switch sharing["enable"] {
	case true:
		delete(sharing, "enable")
	case false:
		delete(options, "fairSharing")
	}
}

// section returns the options of a section, nil if it is absent.
func section(options map[string]any, name string) map[string]any {
	below, _ := options[name].(map[string]any)
	return below
}
