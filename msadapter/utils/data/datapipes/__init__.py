"""torch.utils.data.datapipes: only the class by which libraries ask whether a data set is a DataPipe."""
