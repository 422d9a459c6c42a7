package main

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// celRule makes a rule from a text whose line breaks and tabs are for people, and its arguments as fmt has them.
func celRule(path, message, text string, arguments ...any) apiextensionsv1.ValidationRule {
	return apiextensionsv1.ValidationRule{
		Rule:      strings.Join(strings.Fields(fmt.Sprintf(text, arguments...)), " "),
		Message:   message,
		FieldPath: path,
	}
}

// sameOptional is the expression that a field is in both objects, and equal, or in neither.
func sameOptional(object, old, field string) string {
	return fmt.Sprintf("has(%[1]s.%[3]s) == has(%[2]s.%[3]s) && (!has(%[1]s.%[3]s) || %[1]s.%[3]s == %[2]s.%[3]s)", object, old, field)
}
