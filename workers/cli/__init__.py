"""The commands of online-svm, a file a group."""
