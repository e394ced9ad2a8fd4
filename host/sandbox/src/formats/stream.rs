//! Pages of a feed as one answer: each is handed in when it has come, and what can leave then is handed out.

use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::arrow::Layout;
use super::csv;
use super::kinds::{Format, Unfit};
use crate::columns::Output;
use crate::json::{self, Field};

/// Small pages of a Parquet file make one row group together, up to so many rows or so much memory.
const GROUP_ROWS: usize = 10_000;
const GROUP_BYTES: usize = 4 << 20;
/// Columns, times row groups, of one Parquet file. Its end tells of each where it is and what it has, which is a kilobyte or so in memory until then.
const CHUNKS_MAX: usize = 128 << 10;

/// What has to be known of the pages before. The first page decides what the columns of Arrow and Parquet are.
pub struct Stream {
    format: Format,
    pages: u64,
    chunks_max: usize,
    layout: Option<Layout>,
    writer: Option<Writer>,
}

enum Writer {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl Stream {
    pub fn new(format: Format) -> Stream {
        Stream {
            format,
            pages: 0,
            chunks_max: CHUNKS_MAX,
            layout: None,
            writer: None,
        }
    }

    /// The first `rows` rows of the next page.
    pub fn write(
        &mut self,
        output: Output,
        fields: &[Field],
        rows: usize,
    ) -> Result<Vec<u8>, Unfit> {
        self.pages += 1;
        let mut out = Vec::new();
        match self.format {
            Format::Json | Format::JsonLines => {
                json::write_lines(&mut out, &output, fields, 0..rows);
            }
            Format::Csv => {
                if self.pages == 1 {
                    csv::write_head(&mut out, fields);
                }
                csv::write_rows(&mut out, &output, fields, 0..rows);
            }
            Format::Arrow | Format::Parquet => return self.write_columns(output, fields, rows),
        }
        Ok(out)
    }

    fn write_columns(
        &mut self,
        output: Output,
        fields: &[Field],
        rows: usize,
    ) -> Result<Vec<u8>, Unfit> {
        let layout = self
            .layout
            .get_or_insert_with(|| Layout::of(&output, fields, rows));
        let batches = layout.batches(output, fields, rows)?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(Writer::new(self.format, layout)?),
        };
        match writer {
            Writer::Arrow(writer) => {
                for batch in &batches {
                    writer.write(batch).map_err(failed)?;
                }
                writer.flush().map_err(failed)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Writer::Parquet(writer) => {
                let groups = writer.flushed_row_groups().len();
                if groups.saturating_mul(fields.len()) >= self.chunks_max {
                    return Err(Unfit::Groups(groups));
                }
                for batch in &batches {
                    writer.write(batch).map_err(failed)?;
                }
                if writer.in_progress_rows() >= GROUP_ROWS || writer.memory_size() >= GROUP_BYTES {
                    writer.flush().map_err(failed)?;
                }
                Ok(std::mem::take(writer.inner_mut()))
            }
        }
    }

    /// What stands behind the last page.
    pub fn finish(&mut self) -> Result<Vec<u8>, Unfit> {
        match self.writer.take() {
            None => Ok(Vec::new()),
            Some(Writer::Arrow(mut writer)) => {
                writer.finish().map_err(failed)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Some(Writer::Parquet(mut writer)) => {
                writer.finish().map_err(failed)?;
                // What its own buffer still has.
                writer.sync().map_err(failed)?;
                Ok(std::mem::take(writer.inner_mut()))
            }
        }
    }
}

impl Writer {
    fn new(format: Format, layout: &Layout) -> Result<Writer, Unfit> {
        let schema = layout.schema.clone();
        Ok(match format {
            Format::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .set_created_by("souk".to_owned())
                    .build();
                let writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties));
                Writer::Parquet(Box::new(writer.map_err(failed)?))
            }
            _ => {
                let writer = StreamWriter::try_new(Vec::new(), &schema);
                Writer::Arrow(Box::new(writer.map_err(failed)?))
            }
        })
    }
}

fn failed(error: impl std::fmt::Display) -> Unfit {
    Unfit::Writer(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{Batch, Chunk, Column, ColumnData, ColumnKind};

    fn page(rows: usize) -> Output {
        let column = Column {
            name: "c".to_owned(),
            kind: ColumnKind::Int64,
            nullable: true,
            native: String::new(),
        };
        let chunk = Chunk {
            validity: None,
            data: ColumnData::I64s(vec![7; rows]),
        };
        let batch = Batch {
            rows: rows as u32,
            chunks: vec![chunk],
        };
        Output::new(vec![column].into(), vec![batch], 0)
    }

    fn groups(stream: &Stream) -> usize {
        match &stream.writer {
            Some(Writer::Parquet(writer)) => writer.flushed_row_groups().len(),
            _ => 0,
        }
    }

    /// What is kept of a Parquet file until its end is for each group of rows: small pages make one together.
    #[test]
    fn small_pages_make_one_group() {
        let mut stream = Stream::new(Format::Parquet);
        let fields = [Field::new(0, "a"), Field::new(0, "b")];
        let mut seen = Vec::new();
        for rows in [1, 1, 9_000, 997, 1, 20_000, 1] {
            stream.write(page(rows), &fields, rows).unwrap();
            seen.push(groups(&stream));
        }
        assert_eq!(seen, [0, 0, 0, 0, 1, 2, 2]);
        assert!(stream.finish().unwrap().ends_with(b"PAR1"));
    }

    /// So many groups are the most; other formats keep nothing.
    #[test]
    fn a_parquet_file_has_so_many_groups() {
        let fields = [Field::new(0, "a"), Field::new(0, "b")];
        for (format, most) in [(Format::Parquet, 3), (Format::Csv, 9)] {
            let mut stream = Stream::new(format);
            stream.chunks_max = 5;
            let written = (0..9).take_while(|_| {
                let page = stream.write(page(1), &fields, 1);
                if let Some(Writer::Parquet(writer)) = &mut stream.writer {
                    writer.flush().unwrap();
                }
                page.is_ok()
            });
            assert_eq!(written.count(), most, "{format:?}");
        }
    }
}
